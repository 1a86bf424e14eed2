package optim_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/optim"
)

// reference is what testdata/reference.py computes by the papers' formulas.
func reference(t *testing.T) (all map[string][]float64) {
	raw, err := os.ReadFile("testdata/reference.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &all))
	return all
}

// numbers are those of the script.
func numbers(seed, n int) (list []float64) {
	for range n {
		seed = seed * 48271 % 2147483647
		list = append(list, float64(seed)/2147483647*2-1)
	}
	return list
}

// The constants are what the script prints.
func TestReference(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		if os.Getenv("GOCCL_REQUIRE") == "all" {
			t.Fatal(err)
		}
		t.Skip("NOT RUN: no python3")
	}
	out, err := exec.CommandContext(t.Context(), "python3", "testdata/reference.py").Output()
	require.NoError(t, err)
	var fresh map[string][]float64
	require.NoError(t, json.Unmarshal(out, &fresh))
	want := reference(t)
	require.Len(t, fresh, len(want))
	for name, list := range want {
		require.InDeltaSlice(t, list, fresh[name], 1e-14, name) // sums and powers differ between versions of Python
	}
}

func TestLion(t *testing.T) {
	const n = 15
	p, m := numbers(1, n), make([]float64, n)
	for step := 1; step <= 4; step++ {
		require.NoError(t, optim.ApplyLion(optim.Lion{LR: .01, Decay: .1}, p, numbers(1000+step, n), m))
	}
	require.InDeltaSlice(t, reference(t)["lion 5 x 3"], p, 1e-15)
	// A direction of 0 steps nowhere.
	q := []float32{2}
	require.NoError(t, optim.ApplyLion(optim.Lion{LR: 1}, q, []float32{0}, []float32{0}))
	require.Equal(t, []float32{2}, q)
	// A parameter that is cut into pieces gets the same bits.
	whole, cut := newState(1001), newState(1001)
	h := optim.Lion{LR: 3e-4, Beta1: .95, Beta2: .98, Decay: .1}
	for range 20 {
		require.NoError(t, optim.ApplyLion(h, whole.p, whole.g, whole.m))
		for lo := 0; lo < 1001; lo += 97 {
			hi := min(lo+97, 1001)
			require.NoError(t, optim.ApplyLion(h, cut.p[lo:hi], cut.g[lo:hi], cut.m[lo:hi]))
		}
	}
	require.Equal(t, whole.p, cut.p)
	require.Zero(t, testing.AllocsPerRun(10, func() {
		require.NoError(t, optim.ApplyLion(h, whole.p, whole.g, whole.m))
	}))
	require.EqualError(t, optim.ApplyLion(h, q, q, nil), "optim: 1 parameters, but 1 gradients, and state of 0")
	require.EqualError(t, optim.ApplyLion(optim.Lion{Beta2: 2}, q, q, q), "optim: Lion with Beta1 0.9, Beta2 2: they are from 0 to 1")
}

func TestSchedules(t *testing.T) {
	want := reference(t)
	for name, rate := range map[string]func(step, warm int) float64{
		"constant":     func(s, w int) float64 { return optim.Constant(s, w, 2) },
		"linear":       func(s, w int) float64 { return optim.Linear(s, w, 100, 2, .1) },
		"cosine":       func(s, w int) float64 { return optim.Cosine(s, w, 100, 2, .1) },
		"wsd":          func(s, w int) float64 { return optim.WSD(s, w, 30, 100, 2, .1) },
		"inverse sqrt": func(s, w int) float64 { return optim.InverseSqrt(s, w, 2) },
		"stairs":       func(s, w int) float64 { return optim.Stairs(s, w, 25, 2, .5) },
		"restarts":     func(s, w int) float64 { return optim.Restarts(s, w, 10, 2, 2, .1) },
	} {
		for _, warm := range []struct {
			n    int
			name string
		}{{0, " 0"}, {10, " 10"}} {
			var got []float64
			for s := 1; s <= 120; s++ {
				got = append(got, rate(s, warm.n))
			}
			require.InDeltaSlice(t, want[name+warm.name], got, 1e-14, "%s, warm-up %d", name, warm.n)
		}
		// Whatever is asked for, a rate is a number, and none is below 0.
		for s := -3; s < 5; s++ {
			for _, warm := range []int{-1, 0, 3, 200} {
				require.GreaterOrEqual(t, rate(s, warm), 0.)
				require.LessOrEqual(t, rate(s, warm), 2.)
			}
		}
	}
	require.Equal(t, .1, optim.WSD(100, 0, 0, 100, 2, .1))
	require.Equal(t, 2., optim.WSD(99, 0, 0, 100, 2, .1))
	require.Equal(t, 2., optim.Stairs(99, 0, 0, 2, .5))
}
