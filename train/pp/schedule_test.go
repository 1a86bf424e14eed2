package pp

import (
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every schedule for up to 16 stages and micro batches and 3 chunks is correct, with the bubble of the formula; 1F1B
// holds as many micro batches as there are stages behind, this one included.
func TestSchedules(t *testing.T) {
	for p := 1; p <= 16; p++ {
		for m := 1; m <= 16; m++ {
			for _, s := range []struct {
				name string
				f    Schedule
				v    int
			}{{"GPipe", GPipe, 1}, {"1F1B", OneFOneB, 1}, {"ZB-H1", ZBH1, 1}, {"interleaved 1", Interleaved(1), 1}, {"interleaved 2", Interleaved(2), 2}, {"interleaved 3", Interleaved(3), 3}} {
				name := fmt.Sprintf("%s, %d stages, %d micro batches", s.name, p, m)
				held, err := Check(s.f, p, m, s.v)
				require.NoError(t, err, name)
				forward, err := Check(Forward(s.f), p, m, s.v)
				require.NoError(t, err, name)
				require.Len(t, forward, p)
				mod := &model{p: p, v: s.v}
				for r := range p {
					mod.todo = append(mod.todo, slices.Collect(s.f(p, r, m)))
				}
				_, idle, err := mod.run(1, 2, 1)
				require.NoError(t, err, name)
				if s.name != "ZB-H1" && (s.name[0] != 'i' || m%p == 0) {
					require.InDelta(t, Bubble(p, m, s.v), idle, 1e-9, name)
				}
				for r, n := range held {
					switch s.name {
					case "1F1B":
						require.Equal(t, min(p-r, m), n, name)
					case "ZB-H1":
						require.Equal(t, min(p, m), n, name)
					case "GPipe":
						require.Equal(t, m, n, name)
					}
				}
			}
		}
	}
}

// ZB-H1 has the bubble of its formula, whatever the passes take, as long as the weights' take no longer than the others
// and there are as many micro batches as stages.
func TestZBH1(t *testing.T) {
	for p := 1; p <= 12; p++ {
		for m := p; m <= 2*p+3; m++ {
			for _, took := range [][3]float64{{1, 1, 1}, {2, 2, 1}, {2, 3, 2}, {1, 2, 1}} {
				f, b, w := took[0], took[1], took[2]
				mod := &model{p: p, v: 1}
				for r := range p {
					mod.todo = append(mod.todo, slices.Collect(ZBH1(p, r, m)))
				}
				_, idle, err := mod.run(f, b, w)
				require.NoError(t, err)
				x := float64(p-1) * (f + b - w)
				require.InDelta(t, x/(float64(m)*(f+b+w)+x), idle, 1e-9, "%d stages, %d micro batches, %v", p, m, took)
			}
		}
	}
}

// Nor does an interleaved schedule end where micro batches do not divide, however many groups of them there are.
func TestInterleavedOfAnyNumber(t *testing.T) {
	for p := 7; p <= 20; p++ {
		for m := 1; m <= 4*p+1; m++ {
			for v := 2; v <= 3; v++ {
				held, err := Check(Interleaved(v), p, m, v)
				require.NoError(t, err, "%d stages, %d micro batches, %d chunks", p, m, v)
				if p == 7 && m >= 2*p {
					require.Less(t, held[0], m*v)
				}
			}
		}
	}
	held, err := Check(Interleaved(2), 8, 23, 2)
	require.NoError(t, err)
	require.Equal(t, 46, held[0])
}

func TestCheckFinds(t *testing.T) {
	of := func(stages ...[]Step) Schedule {
		return func(_, stage, _ int) iter.Seq[Step] { return slices.Values(stages[stage]) }
	}
	f, b := Step{}, Step{Backward: true}
	f1, b1 := Step{Micro: 1}, Step{Backward: true, Micro: 1}
	w := Step{Weights: true}
	for _, tc := range []struct {
		name string
		s    Schedule
		p, m int
		want string
	}{
		{"no stage", GPipe, 0, 2, "pp: 0 stages, 2 micro batches and 1 chunks: there must be a stage and a chunk, and no number is negative"},
		{"negative", GPipe, 2, -1, "pp: 2 stages, -1 micro batches and 1 chunks: there must be a stage and a chunk, and no number is negative"},
		{"twice", of([]Step{f, f}), 1, 1, "pp: stage 0 runs forward of micro batch 0, chunk 0 twice, or has no such step"},
		{"twice, with two buffers", of([]Step{f, {In: 1}, {Micro: 1, In: 1, Out: 1}, b1}), 1, 2, "pp: stage 0 runs forward of micro batch 0, chunk 0 twice, or has no such step"},
		{"no such micro batch", of([]Step{f1, b1}), 1, 1, "pp: stage 0 runs forward of micro batch 1, chunk 0 twice, or has no such step"},
		{"too few", of([]Step{f, b, f1}), 1, 2, "pp: stage 0 has 3 steps, not the 4 of 2 micro batches in 1 chunks"},
		{"none", of([]Step{}), 1, 1, "pp: stage 0 has 0 steps, not the 2 of 1 micro batches in 1 chunks"},
		{"too few forward", of([]Step{f}), 1, 2, "pp: stage 0 has 1 steps, not the 2 of 2 micro batches in 1 chunks"},
		{"forward on one stage", of([]Step{f}, []Step{f, b}), 2, 1, "pp: stage 0 has 1 steps, not the 2 of 1 micro batches in 1 chunks"},
		{"backward first", of([]Step{b, f}), 1, 1, "pp: stage 0 has the backward of micro batch 0, chunk 0 before its forward"},
		{"weights first", of([]Step{f, w, b}), 1, 1, "pp: stage 0 has the gradients of the weights of micro batch 0, chunk 0 before its backward"},
		{"weights on one stage", of([]Step{f, b, w}, []Step{f, b}), 2, 1, "pp: stage 1 has 2 steps, not the 3 of 1 micro batches in 1 chunks"},
		{"two in one", of([]Step{f, {Backward: true, Weights: true}, w}), 1, 1, "pp: stage 0 runs backward of micro batch 0, chunk 0 twice, or has no such step"},
		{"deadlock", of([]Step{f, b, f1, b1}, []Step{f, f1, b, b1}), 2, 2, "pp: deadlock: stage 0 cannot begin the backward of micro batch 0, chunk 0"},
		{"another order", of([]Step{f, f1, b, b1}, []Step{f1, f, b, b1}), 2, 2, "pp: stage 1 expects the forward of micro batch 1, chunk 0, but is sent the forward of micro batch 0, chunk 0"},
		{"chunks", Interleaved(2), 2, 2, "pp: stage 0 runs forward of micro batch 0, chunk 1 twice, or has no such step"},
	} {
		_, err := Check(tc.s, tc.p, tc.m, 1)
		require.EqualError(t, err, tc.want, tc.name)
	}
	held, err := Check(of([]Step{{In: 1}, {Backward: true, Out: 1}}), 1, 1, 1)
	require.NoError(t, err)
	require.Equal(t, []int{1}, held, "buffers are the Pipeline's")
	nothing, err := Check(nil, 4, 16, 1)
	require.NoError(t, err)
	require.Equal(t, []int{4, 3, 2, 1}, nothing, "a nil Schedule is 1F1B")
	require.Zero(t, Bubble(1, 0, 0))
	// Leaving a loop over a schedule leaves it.
	for range OneFOneB(4, 0, 8) {
		break
	}
}

func ExampleCheck() {
	gpipe, _ := Check(GPipe, 4, 16, 1)
	alternating, _ := Check(OneFOneB, 4, 16, 1)
	fmt.Println("held:", gpipe, alternating)
	fmt.Printf("bubble: %.3f, with two chunks %.3f\n", Bubble(4, 16, 1), Bubble(4, 16, 2))
	// Output:
	// held: [16 16 16 16] [4 3 2 1]
	// bubble: 0.158, with two chunks 0.086
}
