package fit

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// machine is one whose links have what fit knows nothing of: jitter, contention, since
// two hosts share one link to the others, and another way to send messages from 16 KiB
// on.
func machine(ranks int) *simulated {
	return &simulated{Ranks: ranks, PerNode: 2, Alpha: 5, Beta: 1 / 12.5e3, InsideAlpha: 5, InsideBeta: 1 / 12.5e3,
		Switch: 16 << 10, Announce: 3, Copy: 1 / 30e3, Jitter: 0.05, Seed: 42}
}

// algorithm is the choice by size that measured runs make, too.
func algorithm(size, ranks int) (string, func(int) algo.Schedule) {
	if size < 32<<10 {
		return "doubling over TCP", scheduleOf(op.AllReduce, "doubling", ranks)
	}
	return "ring over TCP", scheduleOf(op.AllReduce, "ring", ranks)
}

// measured is a run on the machine as -J would have stored it.
func measured(t *testing.T, ranks, largest int) *report.File {
	t.Helper()
	f := &report.File{Version: 3, Config: report.Config{Setup: report.Setup{Ranks: ranks, GroupRanks: ranks, Hosts: ranks}}}
	for size := 8; size <= largest; size *= 2 {
		name, schedule := algorithm(size, ranks)
		row := report.Row{Op: "allreduce", Size: size, Algorithm: name}
		for i, half := range []*report.Result{&row.OutOfPlace, &row.InPlace} {
			m := machine(ranks)
			m.Seed = uint64(i)
			us, err := m.time(float64(size), schedule)
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
	a := l.Alpha()
	require.InEpsilon(t, 5, a.Estimate, 0.1)
	require.Less(t, a.Low, a.Estimate)
	require.Greater(t, a.High, a.Estimate)
	require.False(t, math.IsInf(a.High, 0))
	require.InEpsilon(t, 1/12.5e3, l.Beta().Estimate, 0.1)

	rows, err := l.To(1024, false)
	require.NoError(t, err)
	for i, p := range rows {
		m := machine(1024)
		name, schedule := algorithm(int(p.Size), 1024)
		require.Equal(t, name, p.Algorithm)
		if i%6 != 5 || testing.Short() && p.Size > 1<<20 {
			continue
		}
		truth, err := m.time(p.Size, schedule)
		require.NoError(t, err)
		require.InEpsilon(t, truth, p.Time, 0.2, "%v bytes: %v us, not %v", p.Size, p.Time, truth)
	}
}

// Without noise the line is found as it is, and there is only one.
func TestExact(t *testing.T) {
	f := &report.File{Config: report.Config{Setup: report.Setup{Ranks: 8, Hosts: 8}}}
	for size := 8; size <= 1<<20; size *= 4 {
		us := 14*3 + 1.75*float64(size)*2e-4
		f.Results = append(f.Results, report.Row{Op: "allreduce", Size: size, Algorithm: "ring over TCP", OutOfPlace: report.Result{Time: us}, InPlace: report.Result{Time: us}})
	}
	l, err := Of(f, "allreduce")
	require.NoError(t, err)
	require.InDelta(t, 3, l.Alpha().Estimate, 1e-9)
	require.InDelta(t, 2e-4, l.Beta().Estimate, 1e-12)
	require.Zero(t, l.Switch())
	rows, err := l.To(16, false)
	require.NoError(t, err)
	require.InDelta(t, 30*3+1.875*8*2e-4, rows[0].Time, 1e-9)
}

// Of a run with -split the group counts, and not the job: here every other of 16 ranks, one on each of 16 hosts. The
// file says so, or the hosts' names do.
func TestSplit(t *testing.T) {
	devices := func(of func(rank int) string) (places []report.Place) {
		for r := range 16 {
			places = append(places, report.Place{Rank: r, Group: r % 2, Host: of(r)})
		}
		return places
	}
	for _, tc := range []struct {
		name string
		set  func(c *report.Config)
		err  string
	}{
		{"said", func(c *report.Config) { c.GroupHosts = 8 }, ""},
		{"named", func(c *report.Config) { c.Devices = devices(func(r int) string { return "h" + strconv.Itoa(r) }) }, ""},
		{"unknown", func(c *report.Config) { c.Devices = devices(func(int) string { return "vm" }) }, "allreduce: the run has -split mod:2, and does not say on how many hosts a group is; measure it anew"},
	} {
		f := measured(t, 8, 1<<20)
		for i := range f.Results { // the group alone, without jitter: one line, exactly
			r := &f.Results[i]
			shape, known := shapeOf("allreduce", r.Algorithm, 8, 8)
			require.True(t, known)
			r.OutOfPlace.Time = 5*shape.Messages + shape.Volume*float64(r.Size)/12.5e3
			r.InPlace.Time = r.OutOfPlace.Time
		}
		f.Config.Ranks, f.Config.GroupRanks, f.Config.Hosts, f.Config.Split = 16, 8, 16, "mod:2"
		tc.set(&f.Config)
		l, err := Of(f, "allreduce")
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err, tc.name)
		require.InDelta(t, 5, l.Alpha().Estimate, 1e-6, tc.name)
		require.InDelta(t, 1/12.5e3, l.Beta().Estimate, 1e-9, tc.name)
		require.Zero(t, l.Switch(), "no switch of protocol is invented")
		require.Equal(t, []int{8, 8}, []int{l.Ranks, l.Hosts})
	}
	f := measured(t, 8, 1<<20)
	f.Config.Split, f.Config.Hosts = "node", 4
	n, err := hostsOf(&f.Config)
	require.NoError(t, err)
	require.Equal(t, 1, n)
}

func TestRefuses(t *testing.T) {
	f := &report.File{Config: report.Config{Setup: report.Setup{Ranks: 8, Hosts: 8}}}
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
	_, err = l.To(120960, true)
	require.NoError(t, err)
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
				var out strings.Builder
				_ = l.write(&out, []int{1, 2, 1000}, true)
				if strings.ContainsFunc(strings.ReplaceAll(out.String(), "\n", ""), unicode.IsControl) {
					t.Fatalf("%q", out.String())
				}
			}
			effective(file, op)
		}
	})
}

func FuzzLink(f *testing.F) {
	for _, s := range []string{"1.5,100", "nan,1", "1,inf", "1e308,1e-308", ",", "-1,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !strings.Contains(s, ",") { // the name of a file
			return
		}
		if l, err := readLink(s); err == nil && !(l.alpha >= 0 && l.beta > 0) {
			t.Fatalf("%q is %+v", s, l)
		}
	})
}
