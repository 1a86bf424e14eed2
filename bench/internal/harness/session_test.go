package harness

import (
	"bytes"
	"context"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/race"
)

// job is sessions of n ranks in this process, and what rank 0 writes.
type job struct {
	out, err bytes.Buffer
	file     *report.File
	errs     []error
}

// sessions runs body on n ranks, whose options are o.
func sessions(t *testing.T, n int, o option.Options, body func(s *session) error) *job {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j := &job{file: report.NewFile([]string{"bench"}, nil, time.Now()), errs: make([]error, n)}
	var wait sync.WaitGroup
	for r, b := range boot.Local(n) {
		wait.Go(func() {
			s := &session{ctx: ctx, o: &o}
			if r == 0 {
				s.out = &output{w: &j.out, err: &j.err, file: j.file, opts: &o}
			}
			if j.errs[r] = s.begin(b, 0); j.errs[r] == nil {
				j.errs[r] = body(s)
			}
			if r == 0 {
				s.out.tail()
			}
			s.end()
		})
	}
	wait.Wait()
	return j
}

func (j *job) ok(t *testing.T) *job {
	t.Helper()
	for r, err := range j.errs {
		require.NoError(t, err, "rank %d", r)
	}
	return j
}

// options are quick ones, of the flags that are given.
func options(t testing.TB, args ...string) option.Options {
	t.Helper()
	o, err := option.Parse(append([]string{"-b", "64", "-e", "256", "-n", "5"}, args...))
	require.NoError(t, err)
	return o
}

// ready is sessions that have their buffers.
func ready(t *testing.T, n int, o option.Options, body func(s *session) error) *job {
	t.Helper()
	return sessions(t, n, o, func(s *session) error {
		if err := s.prepare(); err != nil {
			return err
		}
		return body(s)
	})
}

// changed is curve of the all-reduce, whose Run wrap replaces, on ranks that have their buffers.
func changed(t *testing.T, n int, o option.Options, wrap func(comm *ccl.Comm, call int, run func() error, dst []float32) error) *job {
	t.Helper()
	return ready(t, n, o, func(s *session) error {
		c, calls := coll.Named[float32]("allreduce"), 0
		run := c.Run
		c.Run = func(ctx context.Context, comm *ccl.Comm, sh coll.Shape, dst, src []float32, op ccl.Op) error {
			calls++
			return wrap(comm, calls, func() error { return run(ctx, comm, sh, dst, src, op) }, dst)
		}
		return curve(s, c, ccl.Sum, -1)
	})
}

// One wrong element, of one rank, in one call, is found and named.
func TestPlantedWrongResult(t *testing.T) {
	o := options(t, "-c", "3", "-b", "256")
	j := changed(t, 3, o, func(comm *ccl.Comm, call int, run func() error, dst []float32) error {
		err := run()
		// Out of place: 1 to warm up, 5 timed, 5 timed one by one, then the checked ones.
		if comm.Rank() == 1 && call == 13 {
			dst[17] += 4
		}
		return err
	}).ok(t)
	require.Len(t, j.file.Results, 1)
	require.Equal(t, int64(1), *j.file.Results[0].OutOfPlace.Wrong)
	require.Equal(t, int64(0), *j.file.Results[0].InPlace.Wrong)
	require.Regexp(t, `^bench: wrong data: allreduce float sum, 256 bytes, out of place: rank 1: element 17 is \S+, not \S+ \(wrong there: 1\), in check 2\n$`, j.err.String())
}

// A rank that does not come costs the run, within -T, and the others say who it is.
func TestHungRank(t *testing.T) {
	o := options(t, "-T", "1")
	released := make(chan struct{})
	var once sync.Once
	j := changed(t, 3, o, func(comm *ccl.Comm, call int, run func() error, _ []float32) error {
		if comm.Rank() == 1 && call == 3 {
			<-released
		}
		err := run()
		if err != nil {
			once.Do(func() { close(released) })
		}
		return err
	})
	for _, r := range []int{0, 2} {
		require.ErrorContains(t, j.errs[r], "allreduce float sum, 64 bytes: longer than -T 1s: ")
		require.ErrorIs(t, j.errs[r], ccl.ErrTimeout)
		require.Contains(t, j.errs[r].Error(), "timed out at rank 1")
	}
	require.Error(t, j.errs[1])
}

// What the harness adds to each timed iteration is less than 100 ns: what an empty call takes. The least of many
// stretches counts, since other programs only add to it.
func TestOverhead(t *testing.T) {
	const n = 10000
	most := 100.0
	if race.Enabled { // which looks at each access to memory
		most *= 10
	}
	for _, args := range [][]string{nil, {"-rotate", "4"}} {
		least := math.Inf(1)
		ready(t, 1, options(t, args...), func(s *session) error {
			c := coll.Named[float32]("allreduce")
			c.Run = func(context.Context, *ccl.Comm, coll.Shape, []float32, []float32, ccl.Op) error { return nil }
			empty := newTest(s, s.ctx, s.lanes[0], c, ccl.Sum, -1, 16, 64, false)
			for range 50 {
				took, err := empty.loop(n)
				if err != nil {
					return err
				}
				least = min(least, float64(took.Nanoseconds())/n)
			}
			return nil
		}).ok(t)
		t.Logf("%v: %.1f ns", args, least)
		require.Less(t, least, most)
	}
}

// No iteration allocates.
func TestLoopAllocatesNothing(t *testing.T) {
	o := options(t, "-rotate", "3")
	ready(t, 1, o, func(s *session) error {
		c := coll.Named[float32]("allreduce")
		test := newTest(s, s.ctx, s.lanes[0], c, ccl.Sum, -1, 16, 64, false)
		require.Zero(t, testing.AllocsPerRun(100, func() { test.loop(10) }))
		return nil
	}).ok(t)
}

// What the flags ask for is in the rows.
func TestRows(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks int
		args  []string
		check func(t *testing.T, f *report.File, out string)
	}{
		{"backends", 2, []string{"-backend", "cpu,cpu"}, func(t *testing.T, f *report.File, out string) {
			require.Len(t, f.Results, 6)
			require.Contains(t, out, "# busbw (GB/s) out of place\n#       size       cpu       cpu        \n#         64 ")
		}},
		{"iterations", 2, []string{"-I", "-K", "2"}, func(t *testing.T, f *report.File, out string) {
			p := f.Results[0].OutOfPlaceIter
			require.Len(t, p.Times, 5, "those of all iterations")
			require.Equal(t, 2, p.Skipped)
			require.Less(t, p.Max, p.Min+1e9)
			require.Contains(t, p.Times[2:], p.Max)
			require.LessOrEqual(t, p.Min, p.P50)
			require.LessOrEqual(t, p.P99, p.Max)
			require.Contains(t, out, "i_p99")
		}},
		{"ranks' times", 3, []string{"-J", "x"}, func(t *testing.T, f *report.File, out string) {
			p := f.Results[0].InPlaceIter
			require.Len(t, p.Ranks, 3)
			require.Len(t, p.Ranks[2], 5)
			for i := range p.Times {
				require.Equal(t, p.Times[i], max(p.Ranks[0][i], p.Ranks[1][i], p.Ranks[2][i]))
			}
			require.Positive(t, f.Results[0].OutOfPlace.First)
		}},
		{"cycles", 2, []string{"-N", "2"}, func(t *testing.T, f *report.File, out string) {
			require.Len(t, f.Results, 6)
			require.Equal(t, 1, f.Results[5].Cycle)
		}},
		{"soak", 2, []string{"-for", "20ms"}, func(t *testing.T, f *report.File, out string) { require.NotEmpty(t, f.Results) }},
		{"split", 4, []string{"-split", "mod:2", "-op", "allgather"}, func(t *testing.T, f *report.File, out string) {
			require.Equal(t, 256/4/2, f.Results[2].Count, "of two ranks")
		}},
		{"roots of groups", 4, []string{"-split", "div:2", "-op", "broadcast", "-r", "all"}, func(t *testing.T, f *report.File, out string) {
			require.Len(t, f.Results, 6)
		}},
		{"barrier of groups", 4, []string{"-split", "div:2", "-op", "barrier"}, func(t *testing.T, f *report.File, out string) { require.Len(t, f.Results, 1) }},
		{"matrix", 3, []string{"-op", "alltoallv", "-matrix", "spread:0.5"}, nil},
		{"async", 2, []string{"-z", "0"}, nil},
		{"async groups", 2, []string{"-z", "0", "-m", "3"}, nil},
		{"barriers", 2, []string{"-z", "1"}, nil},
		{"barrier at the end", 2, []string{"-z", "3"}, nil},
		{"rotate", 2, []string{"-rotate", "3", "-u", "1", "-m", "2"}, nil},
		{"registered", 2, []string{"-R", "1", "-op", "all"}, nil},
		{"misaligned", 3, []string{"-u", "3", "-op", "all", "-d", "all", "-b", "256"}, nil},
		{"stamp", 2, []string{"-S", "-M"}, func(t *testing.T, f *report.File, out string) {
			require.Regexp(t, `(?m)  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$`, out)
			require.Regexp(t, `(?m)^# Memory User-Allocated : [\d.]+ MiB a rank, from [\d.]+ to [\d.]+$`, out)
			require.NotEmpty(t, f.Results[0].Time)
		}},
		{"overlap", 2, []string{"-overlap"}, func(t *testing.T, f *report.File, out string) {
			require.NotNil(t, f.Results[0].Overlap)
			require.Contains(t, out, ", overlap: alone ")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := sessions(t, tc.ranks, options(t, tc.args...), (*session).run).ok(t)
			require.Empty(t, j.err.String())
			require.NotEmpty(t, j.file.Results)
			for _, r := range j.file.Results {
				require.Equal(t, int64(0), *r.OutOfPlace.Wrong)
				require.Equal(t, int64(0), *r.InPlace.Wrong)
			}
			if tc.check != nil {
				tc.check(t, j.file, j.out.String())
			}
		})
	}
}

// -time measures for that long, and 20 iterations at least.
func TestTarget(t *testing.T) {
	o, err := option.Parse([]string{"-b", "64", "-e", "64", "-time", "20ms"})
	require.NoError(t, err)
	var loops []*loop[float32]
	ready(t, 2, o, func(s *session) error {
		p := &loop[float32]{t: newTest(s, s.ctx, s.lanes[0], coll.Named[float32]("allreduce"), ccl.Sum, -1, 16, 64, false)}
		if s.world.Rank() == 0 {
			loops = append(loops, p)
		}
		return timed(s, []*loop[float32]{p})
	}).ok(t)
	require.GreaterOrEqual(t, loops[0].iters, 20)
	require.GreaterOrEqual(t, loops[0].took, 10*time.Millisecond)
}

func TestStartup(t *testing.T) {
	o := options(t, "-backend", "cpu,cpu", "-split", "div:1")
	sessions(t, 2, o, func(s *session) error {
		require.Contains(t, s.startup.Comms, "cpu")
		require.Positive(t, s.startup.Comms["cpu"])
		require.Positive(t, s.startup.Split)
		require.Equal(t, 1, s.ranks())
		return nil
	}).ok(t)
}

func TestStep(t *testing.T) {
	for _, args := range [][]string{{"-plan", "ddp", "-model", "resnet50", "-d", "bf16"}, {"-plan", "zero3", "-model", "resnet50", "-d", "half"}} {
		o, err := option.Parse(append(args, "-n", "1"))
		require.NoError(t, err)
		j := sessions(t, 2, o, (*session).run).ok(t)
		require.NotNil(t, j.file.Step)
		require.Equal(t, o.Plan, j.file.Step.Scheme)
		calls := 0
		for _, r := range j.file.Results {
			calls += r.Calls
			require.Equal(t, int64(0), *r.OutOfPlace.Wrong)
		}
		require.Equal(t, calls, j.file.Step.Calls)
		require.Contains(t, j.out.String(), "# step: "+o.Plan+" of resnet50 on 2 ranks: ")
	}
}

func TestNoDeviceMemory(t *testing.T) {
	o := options(t)
	o.Mem = "device"
	j := sessions(t, 1, o, (*session).run)
	require.EqualError(t, j.errs[0], "-mem device: no such memory in this build; host memory is always available")
}

func TestNoBackend(t *testing.T) {
	o := options(t, "-backend", "rccl")
	j := sessions(t, 2, o, (*session).run)
	require.ErrorContains(t, j.errs[0], "-backend rccl: ")
}
