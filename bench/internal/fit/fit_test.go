package fit

import (
	"io"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/simulate"
)

// machine is one whose links have what fit knows nothing of: jitter, contention, since
// two hosts share one link to the others, and another way to send messages from 16 KiB
// on.
func machine(ranks int) *simulate.Machine {
	return &simulate.Machine{Ranks: ranks, PerNode: 2, Alpha: 5, Beta: 1 / 12.5e3, InsideAlpha: 5, InsideBeta: 1 / 12.5e3,
		Switch: 16 << 10, Announce: 3, Copy: 1 / 30e3, Jitter: 0.05, Seed: 42}
}

// algorithm is the choice by size that measured runs make, too.
func algorithm(size, ranks int) (string, func(int) simulate.Schedule) {
	if size < 32<<10 {
		return "doubling over TCP", simulate.Doubling(ranks)
	}
	return "ring over TCP", simulate.Ring(ranks)
}

// measured is a run on the machine as -J would have stored it.
func measured(t *testing.T, ranks, largest int) *report.File {
	t.Helper()
	f := &report.File{Version: 3, Config: report.Config{Ranks: ranks, GroupRanks: ranks, Hosts: ranks}}
	for size := 8; size <= largest; size *= 2 {
		name, schedule := algorithm(size, ranks)
		row := report.Row{Op: "allreduce", Size: size, Algorithm: name}
		for i, half := range []*report.Result{&row.OutOfPlace, &row.InPlace} {
			m := machine(ranks)
			m.Seed = uint64(i)
			us, err := m.Time(float64(size), schedule)
			require.NoError(t, err)
			half.Time = us
		}
		f.Results = append(f.Results, row)
	}
	return f
}

func TestSimulatedMachine(t *testing.T) {
	l, err := Of(measured(t, 64, 256<<20), "allreduce")
	require.NoError(t, err)
	t.Logf("alpha %+v, beta %+v, switch at %g", l.Alpha(), l.Beta(), l.Switch())
	require.InEpsilon(t, 5, l.Alpha().Estimate, 0.1)
	require.InEpsilon(t, 1/12.5e3, l.Beta().Estimate, 0.1)

	e, err := l.To(1024, false)
	require.NoError(t, err)
	for i, p := range e.Rows {
		m := machine(1024)
		name, schedule := algorithm(int(p.Size), 1024)
		require.Equal(t, name, p.Algorithm)
		if i%6 != 5 || testing.Short() && p.Size > 1<<20 {
			continue
		}
		truth, err := m.Time(p.Size, schedule)
		require.NoError(t, err)
		require.InEpsilon(t, truth, p.Time, 0.2, "%v bytes: %v us, not %v", p.Size, p.Time, truth)
	}
}

// Without noise the line is found as it is, and there is only one.
func TestExact(t *testing.T) {
	f := &report.File{Config: report.Config{Ranks: 8, Hosts: 8}}
	for size := 8; size <= 1<<20; size *= 4 {
		us := 14*3 + 1.75*float64(size)*2e-4
		f.Results = append(f.Results, report.Row{Op: "allreduce", Size: size, Algorithm: "ring over TCP", OutOfPlace: report.Result{Time: us}, InPlace: report.Result{Time: us}})
	}
	l, err := Of(f, "allreduce")
	require.NoError(t, err)
	require.InDelta(t, 3, l.Alpha().Estimate, 1e-9)
	require.InDelta(t, 2e-4, l.Beta().Estimate, 1e-12)
	require.Zero(t, l.Switch())
	e, err := l.To(16, false)
	require.NoError(t, err)
	require.InDelta(t, 30*3+1.875*8*2e-4, e.Rows[0].Time, 1e-9)
}

func TestRefuses(t *testing.T) {
	f := &report.File{Config: report.Config{Ranks: 8, Hosts: 8}}
	_, err := Of(f, "allreduce")
	require.EqualError(t, err, "allreduce: 0 lines are too few; measure at least 4 sizes")
	for size := 8; size < 1<<12; size *= 2 {
		f.Results = append(f.Results, report.Row{Op: "allreduce", Size: size, Algorithm: "inline over shared memory", OutOfPlace: report.Result{Time: 1}})
	}
	_, err = Of(f, "allreduce")
	require.ErrorContains(t, err, `it ran "inline over shared memory", whose messages are not known`)

	l, err := Of(measured(t, 8, 1<<20), "allreduce")
	require.NoError(t, err)
	_, err = l.To(129, false)
	require.ErrorContains(t, err, "more than 16 times the 8 ranks")
	_, err = l.To(128, false)
	require.NoError(t, err)
	e, err := l.To(120960, true)
	require.NoError(t, err)
	require.Equal(t, 120960, e.Ranks)
	_, err = l.To(0, false)
	require.Error(t, err)
}

func TestShapes(t *testing.T) {
	for _, tc := range []struct {
		op, algorithm string
		n, hosts      int
		want          Shape
	}{
		{"allreduce", "ring over TCP", 8, 8, Shape{14, 1.75, 0.125}},
		{"allreduce", "ring", 1024, 128, Shape{2046.0 / 8, 2046.0 / 1024, 1.0 / 1024}},
		{"reducescatter", "ring", 8, 8, Shape{7, 0.875, 0.125}},
		{"allreduce", "doubling", 1024, 128, Shape{7, 7, 1}},
		{"allreduce", "halving", 8, 8, Shape{6, 1.75, 0.875 / 3}},
		{"barrier", "dissemination", 8, 8, Shape{3, 0, 0}},
		{"allreduce", "hier", 1024, 128, Shape{7, 7, 1}},
		{"allreduce", "hier-ring", 1024, 128, Shape{254, 254.0 / 128, 1.0 / 1024}},
		{"broadcast", "tree", 8, 8, Shape{3, 3, 1}},
		{"broadcast", "scatter-ring", 8, 8, Shape{10, 1.75, 0.125}},
		{"gather", "tree", 8, 8, Shape{3, 0.875, 0.875 / 3}},
		{"alltoall", "pairwise", 8, 8, Shape{7, 0.875, 0.125}},
		{"scatter", "direct", 8, 8, Shape{1, 0.875, 0.125}},
		{"sendrecv", "", 8, 8, Shape{1, 1, 1}},
	} {
		got, known := shapeOf(tc.op, tc.algorithm, tc.n, tc.hosts)
		require.True(t, known)
		require.InDelta(t, tc.want.Messages, got.Messages, 1e-9, tc.algorithm)
		require.InDelta(t, tc.want.Volume, got.Volume, 1e-9, tc.algorithm)
		require.InDelta(t, tc.want.Part, got.Part, 1e-9, tc.algorithm)
	}
	_, known := shapeOf("allreduce", "staged over shared memory", 8, 1)
	require.False(t, known)
}

func TestInterval(t *testing.T) {
	l, err := Of(measured(t, 64, 64<<20), "allreduce")
	require.NoError(t, err)
	a := l.Alpha()
	require.Less(t, a.Low, a.Estimate)
	require.Greater(t, a.High, a.Estimate)
	require.False(t, math.IsInf(a.High, 0))
}

// A file of anybody's may say anything.
func FuzzFile(f *testing.F) {
	f.Add([]byte(`{"version":3,"config":{"nranks":4,"nhosts":4},"results":[{"op":"allreduce","size":8,"algorithm":"ring over TCP","out_of_place":{"time":9}},` +
		`{"op":"allreduce","size":64,"algorithm":"ring over TCP","out_of_place":{"time":9}},{"op":"allreduce","size":4096,"algorithm":"doubling over TCP","out_of_place":{"time":12}},` +
		`{"op":"allreduce","size":65536,"algorithm":"ring over TCP","out_of_place":{"time":90},"in_place":{"time":1e300}}]}`))
	f.Add([]byte(`{"version":3,"config":{"nranks":-4,"group_ranks":1},"results":[{"op":"gather","size":-8,"algorithm":"tree"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := report.Parse(text)
		if err != nil {
			return
		}
		for _, op := range operations(file, "") {
			if l, err := Of(file, op); err == nil {
				_ = l.write(io.Discard, []int{1, 2, 1000}, true)
			}
			effective(file, op)
		}
	})
}
