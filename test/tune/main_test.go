package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/test/internal/measure"
)

func TestMain(m *testing.M) {
	if done, err := measure.Main(); done { // a job of a test
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestRun measures next to nothing, of everything.
func TestRun(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the measuring program is for Linux")
	}
	t.Setenv("GORACE", "atexit_sleep_ms=0") // of the jobs, under the race detector
	o, err := parse([]string{"-layouts", "2x1,2x2", "-kinds", "allreduce,gather", "-rounds", "1", "-target_ms", "0.01", "-min", "1024", "-max", "65536", "-factor", "64"})
	require.NoError(t, err)
	points, err := o.algorithms()
	require.NoError(t, err)
	require.Len(t, points, 2*2*2)
	var out strings.Builder
	printPoints(&out, points)
	printTables(&out, algo.Defaults(), fit(points, algo.Defaults()))
	require.NoError(t, o.waysOfOneHost(&out))
	for _, part := range []string{"\n2x1    gather               1024  ", "doubling", `  {Kind: op.AllToAll, Name: "pairwise"},`, "\nallreduce         65536 ", "ReadFrom = "} {
		require.Contains(t, out.String(), part)
	}
}

func TestParse(t *testing.T) {
	for _, args := range [][]string{{"-layouts", "4"}, {"-layouts", "1x4"}, {"-kinds", "allredcue"}, {"-rounds", "0"}, {"-max", "1"}, {"x"}} {
		_, err := parse(args)
		require.Error(t, err, args)
	}
}

// synthetic is points of AllReduce, of four hosts, where the vector's bytes and the algorithm give the time.
func synthetic(us func(name string, bytes int) float64) []*point {
	var points []*point
	for bytes := 1 << 10; bytes <= 1<<20; bytes *= 2 {
		p := &point{op.AllReduce, layout{4, 1}, bytes, map[string][]float64{}}
		for _, name := range []string{"ring", "halving", "doubling"} {
			for round := range 7 {
				p.us[name] = append(p.us[name], us(name, bytes)*(1+0.001*float64(round%3)))
			}
		}
		points = append(points, p)
	}
	return points
}

func TestFitMovesThresholds(t *testing.T) {
	points := synthetic(func(name string, bytes int) float64 {
		switch {
		case name == "doubling" && bytes < 8<<10, name == "halving" && bytes >= 8<<10 && bytes < 512<<10, name == "ring" && bytes >= 512<<10:
			return 10
		}
		return 20
	})
	tab := fit(points, algo.Defaults())
	require.Len(t, tab, len(algo.Defaults()))
	for _, p := range points {
		want := p.fastest()
		require.Equal(t, want, algo.Choose(p.kind, int64(p.bytes), p.l.topology(), false, tab), p.bytes)
	}
	for i, e := range algo.Defaults() {
		if e.Kind != op.AllReduce {
			require.Equal(t, e, tab[i], "nothing was measured")
		}
	}
	require.Zero(t, cost(points, tab, op.AllReduce))
}

func TestFitLeavesWhatIsAsGood(t *testing.T) {
	require.Equal(t, algo.Defaults(), fit(nil, algo.Defaults()))
	require.Equal(t, algo.Defaults(), fit(synthetic(func(string, int) float64 { return 10 }), algo.Defaults()))
}

func TestSource(t *testing.T) {
	e := algo.Entry{Kind: op.AllReduce, Spread: algo.OneEach, Bytes: 32<<10 + 1, Share: 1 << 20, Ranks: 3, Pow2: true, Name: "halving"}
	require.Equal(t, `{Kind: op.AllReduce, Spread: OneEach, Bytes: 32*kib + 1, Share: 1024 * kib, Ranks: 3, Pow2: true, Name: "halving"},`, source(&e))
	gone := e
	gone.Share = never
	var out strings.Builder
	printTables(&out, algo.Table{e}, algo.Table{gone})
	require.Equal(t, "\ninternal/algo/choose.go, defaults:\n- "+source(&e)+"\n", out.String())
}

func TestFitWays(t *testing.T) {
	present, err := presentWays()
	require.NoError(t, err)
	readings := func(k op.Kind, ratio func(bytes int) float64) (list []*point) {
		for bytes := 16 << 10; bytes <= 16<<20; bytes *= 4 {
			list = append(list, &point{k, layout{1, 2}, bytes, map[string][]float64{staged: {1}, read: {ratio(bytes)}}})
		}
		return list
	}
	as := func(ratio float64) func(int) float64 { return func(int) float64 { return ratio } }
	require.Equal(t, present["ReadFrom"], fitWays(readings(op.Broadcast, as(1)), present)["ReadFrom"])
	got := fitWays(append(readings(op.Broadcast, func(n int) float64 {
		if n < 1<<20 {
			return 2
		}
		return 0.5
	}), readings(op.AllReduce, func(n int) float64 {
		if n > 256<<10 {
			return 2
		}
		return 0.5
	})...), present)
	require.Equal(t, 1<<20, got["ReadFrom"])
	require.Equal(t, 256<<10, got["ReadHalvesTo"])
	got = fitWays(append(readings(op.Broadcast, as(2)), readings(op.AllReduce, as(2))...), present)
	require.Equal(t, map[string]int{"ReadFrom": math.MaxInt, "ReadHalvesTo": 0}, got)
}
