package pp_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/pp"
)

// counter is a stage that adds 1 on the way forward and doubles on the way back, in every part of the model.
type counter struct {
	stages, stage, chunks int
	in, out               [2][2][]float32 // by direction and buffer
	ran                   []pp.Step
	fail                  func(s pp.Step) error
}

func newCounter(c *ccl.Comm, chunks int) *counter {
	s := &counter{stages: c.Size(), stage: c.Rank(), chunks: chunks}
	for d := range 2 {
		for k := range 2 {
			s.in[d][k], s.out[d][k] = make([]float32, 3), make([]float32, 3)
		}
	}
	return s
}

func way(s pp.Step) int {
	if s.Backward {
		return 1
	}
	return 0
}

func (s *counter) In(x pp.Step) ccl.Buf  { return ccl.BufOf(s.in[way(x)][x.In]) }
func (s *counter) Out(x pp.Step) ccl.Buf { return ccl.BufOf(s.out[way(x)][x.Out]) }

func (s *counter) Run(_ context.Context, x pp.Step) error {
	s.ran = append(s.ran, pp.Step{Backward: x.Backward, Weights: x.Weights, Micro: x.Micro, Chunk: x.Chunk})
	if s.fail != nil {
		if err := s.fail(x); err != nil {
			return err
		}
	}
	if x.Weights {
		return nil
	}
	part, parts := x.Chunk*s.stages+s.stage, s.stages*s.chunks
	in, out := s.in[way(x)][x.In], s.out[way(x)][x.Out]
	if !x.Backward && part == parts-1 || x.Backward && part == 0 {
		out = make([]float32, len(out)) // goes nowhere; the buffer may be on its way
	}
	for i := range out {
		switch {
		case !x.Backward && part == 0:
			out[i] = float32(1000*x.Micro + i + 1)
		case !x.Backward:
			out[i] = in[i] + 1
		case part == parts-1:
			out[i] = 2 * float32(x.Micro+i+1)
		default:
			out[i] = 2 * in[i]
		}
		want := float32(1000*x.Micro + i + part + 1)
		if x.Backward {
			want = float32(x.Micro+i+1) * float32(int(1)<<(parts-part))
		}
		if out[i] != want {
			return fmt.Errorf("part %d, %v, element %d: %v, want %v", part, x, i, out[i], want)
		}
	}
	return nil
}

// Every schedule moves every value, whatever the stages are.
func TestRun(t *testing.T) {
	for _, tc := range schedules {
		t.Run(tc.name, func(t *testing.T) {
			for _, n := range []int{1, 2, 3, 4, 5} {
				for _, o := range [][]ccltest.Option{nil, {ccltest.Hosts(min(n, 2))}, {ccltest.Processes(n)}} {
					if o != nil && (n != 3 || testing.Short() && tc.chunks != 2) {
						continue
					}
					ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) { runs(t, c, tc.s, tc.chunks) }, o...)
				}
			}
		})
	}
}

func runs(t testing.TB, c *ccl.Comm, s pp.Schedule, chunks int) {
	ctx, n := t.Context(), c.Size()
	p := newPipeline(t, c, &pp.Options{Chunks: chunks})
	st := newCounter(c, chunks)
	plan := s
	if plan == nil {
		plan = pp.OneFOneB
	}
	for _, micros := range []int{n, 1, 4 * n, 0, n, 2*n + 1} {
		st.ran = nil
		stats, err := p.Run(ctx, s, micros, st)
		require.NoError(t, err)
		require.Equal(t, slices.Collect(plan(n, c.Rank(), micros)), st.ran)
		held, err := pp.Check(plan, n, micros, chunks)
		require.NoError(t, err)
		require.Equal(t, held[c.Rank()], stats.Held)
		sends := 2 * micros * chunks
		if c.Rank() == 0 { // keeps the gradients of the input
			sends -= micros
		}
		if c.Rank() == n-1 { // keeps the output
			sends -= micros
		}
		require.Equal(t, int64(12*sends), stats.Bytes)
		require.True(t, stats.Bubble() >= 0 && (stats.Bubble() < 1 || micros == 0), "%v", stats)
	}
	require.NoError(t, ccl.Barrier(ctx, c))
	require.NoError(t, p.Close())
	require.NoError(t, ccl.Barrier(ctx, c), "the Comm of the stages stays open")
}

// Forward passes alone go through every pipeline, before, between and after whole steps, and hold nothing.
func TestForward(t *testing.T) {
	for _, tc := range schedules {
		for _, n := range []int{1, 2, 3, 4} {
			forward := pp.Forward(tc.s)
			for _, micros := range []int{n, 3 * n} {
				held, err := pp.Check(forward, n, micros, tc.chunks)
				require.NoError(t, err)
				require.Equal(t, slices.Repeat([]int{1}, n), held)
			}
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				p := newPipeline(t, c, &pp.Options{Chunks: tc.chunks})
				defer p.Close()
				for range 2 {
					for _, micros := range []int{n, 3 * n} {
						st := newCounter(c, tc.chunks)
						stats, err := p.Run(t.Context(), forward, micros, st)
						require.NoError(t, err)
						require.Len(t, st.ran, micros*tc.chunks)
						require.Equal(t, 1, stats.Held)
						_, err = p.Run(t.Context(), tc.s, micros, newCounter(c, tc.chunks))
						require.NoError(t, err)
					}
				}
			})
		}
	}
	for range pp.Forward(nil)(4, 0, 8) { // leaving a loop over a schedule leaves it
		break
	}
}

// A stage that fails, in any step, ends all others with its rank.
func TestStageFails(t *testing.T) {
	boom := errors.New("boom")
	for _, culprit := range []int{0, 2, 3} {
		for _, backward := range []bool{false, true} {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				p := newPipeline(t, c, nil)
				defer p.Close()
				st := newCounter(c, 1)
				if c.Rank() == culprit {
					st.fail = func(s pp.Step) error {
						if s.Backward == backward && s.Micro == 2 {
							return boom
						}
						return nil
					}
				}
				_, err := p.Run(t.Context(), pp.OneFOneB, 6, st)
				if c.Rank() == culprit {
					require.ErrorIs(t, err, boom)
					return
				}
				var e *ccl.Error
				if err != nil { // a stage that had done all its steps has none
					require.ErrorAs(t, err, &e)
					require.Equal(t, ccl.ErrAborted, e.Code, "%v", err)
					require.ErrorContains(t, err, fmt.Sprintf("aborted by rank %d: ", culprit)) // and not by this one
					require.ErrorContains(t, err, "boom")
				}
				<-c.Done()
				require.ErrorAs(t, c.Err(), &e)
				require.Equal(t, culprit, e.Peer)
			}, ccltest.With(ccl.Options{Log: slog.New(slog.DiscardHandler)}))
		}
	}
}

// A stage that gives up waiting takes the others with it, and has its buffers back.
func TestStageGivesUp(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		p := newPipeline(t, c, nil)
		defer p.Close()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		st := newCounter(c, 1)
		switch c.Rank() {
		case 0:
			st.fail = func(pp.Step) error { <-c.Done(); return c.Err() }
		case 2:
			time.AfterFunc(10*time.Millisecond, cancel)
		}
		_, err := p.Run(ctx, pp.OneFOneB, 2, st)
		require.Error(t, err)
		for d := range 2 {
			for k := range 2 {
				clear(st.in[d][k]) // the race detector knows whether anybody else still writes there
			}
		}
		<-c.Done()
		var e *ccl.Error
		require.ErrorAs(t, c.Err(), &e)
		require.Equal(t, 2, e.Peer, "%v", e)
	}, ccltest.With(ccl.Options{Log: slog.New(slog.DiscardHandler)}))
}

// Arguments that are wrong, or differ, are one error on all ranks, and the pipeline goes on.
func TestBadArguments(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		odd := func(a, b int) int {
			if c.Rank() == 1 {
				return b
			}
			return a
		}
		_, err := pp.New(ctx, c, &pp.Options{Chunks: odd(1, 2)})
		require.ErrorContains(t, err, "chunks")
		_, err = pp.New(ctx, c, &pp.Options{Chunks: -1})
		require.ErrorContains(t, err, "-1 chunks: there must be at least one")
		p := newPipeline(t, c, nil)
		st := newCounter(c, 1)
		for _, tc := range []struct {
			s      pp.Schedule
			micros int
			want   string
		}{
			{nil, -1, "3 stages, -1 micro batches"},
			{nil, odd(3, 6), "micro batches"},
			{[]pp.Schedule{pp.OneFOneB, pp.GPipe}[odd(0, 1)], 6, "a schedule of hash"},
			{pp.Interleaved(2), 3, "no such step"},
			{pp.Interleaved(0), 4, "stage 0 has 0 steps, not the 8 of 4 micro batches in 1 chunks"},
		} {
			_, err := p.Run(ctx, tc.s, tc.micros, st)
			require.ErrorContains(t, err, tc.want)
			require.Empty(t, st.ran)
		}
		_, err = p.Run(ctx, nil, -1, st)
		require.EqualError(t, err, "pp: 3 stages, -1 micro batches and 1 chunks: there must be a stage and a chunk, and no number is negative")
		stage := pp.Stage(st)
		if c.Rank() == 1 {
			stage = nil
		}
		_, err = p.Run(ctx, nil, 3, stage)
		require.EqualError(t, err, "pp: rank 1: the Stage is nil")
		_, err = p.Run(ctx, nil, 3, st)
		require.NoError(t, err)
		require.NoError(t, ccl.Barrier(ctx, c))
		if c.Rank() == 1 {
			require.NoError(t, p.Close())
		}
		_, err = p.Run(ctx, nil, 3, st)
		require.EqualError(t, err, "pp: rank 1: the Pipeline is closed")
		require.NoError(t, p.Close())
		require.NoError(t, p.Close())
	})
}

// Steps that are right for four micro batches are refused for eight, of which half would not be run.
func TestTooFewSteps(t *testing.T) {
	four := func(stages, stage, _ int) iter.Seq[pp.Step] { return pp.OneFOneB(stages, stage, 4) }
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		p := newPipeline(t, c, nil)
		defer p.Close()
		for _, micros := range []int{4, 8, 4, 8} {
			st := newCounter(c, 1)
			_, err := p.Run(t.Context(), four, micros, st)
			if micros == 4 {
				require.NoError(t, err)
				require.Len(t, st.ran, 8)
				continue
			}
			require.EqualError(t, err, "pp: stage 0 has 8 steps, not the 16 of 8 micro batches in 1 chunks")
			require.Empty(t, st.ran)
		}
	})
}

// One stage that hands over to itself what does not fit has an error, as two stages have.
func TestBuffersDifferInOneStage(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		p := newPipeline(t, c, &pp.Options{Chunks: 2})
		defer p.Close()
		st := newCounter(c, 2)
		st.in[0] = [2][]float32{make([]float32, 4), make([]float32, 4)}
		_, err := p.Run(t.Context(), pp.Interleaved(2), 3, st)
		require.ErrorContains(t, err, "pp: input of the forward of micro batch 0, chunk 1: ")
	})
}

// Buffers of neighbors that do not fit are a mismatch, which names the two.
func TestBuffersDiffer(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		p := newPipeline(t, c, nil)
		defer p.Close()
		st := newCounter(c, 1)
		if c.Rank() == 1 {
			st.in[0] = [2][]float32{make([]float32, 4), make([]float32, 4)}
		}
		_, err := p.Run(t.Context(), nil, 3, st)
		require.Error(t, err)
		if c.Rank() < 2 {
			require.Regexp(t, "differs|disagree", err.Error())
		}
	}, ccltest.With(ccl.Options{Log: slog.New(slog.DiscardHandler)}))
}
