package main_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/stat"
)

var firstPairs = flag.Int("first", 0, "so many pairs of runs in TestFirstRows, and hold them to its promise: for a quiet machine")

// What a default run says of small sizes, in its first milliseconds, is what a run says that takes its time: of each half of a
// row up to 64 KiB the medians of the runs differ by 15 % at most. A default run of the whole curve takes 10 s at most.
func TestFirstRows(t *testing.T) {
	pairs, largest := *firstPairs, "64K"
	if pairs == 0 {
		if testing.Short() {
			t.Skip("-short: two runs of bench that take their time")
		}
		pairs, largest = 1, "512"
	}
	type half struct {
		Time float64 `json:"time"` // us
	}
	type row struct {
		Size int  `json:"size"`
		Out  half `json:"out_of_place"`
		In   half `json:"in_place"`
	}
	file := filepath.Join(t.TempDir(), "out.json")
	run := func(args ...string) []row {
		well(t, nil, append(args, "-op", "allreduce", "-J", file)...)
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		var f struct {
			Results []row `json:"results"`
		}
		require.NoError(t, json.Unmarshal(b, &f))
		require.NotEmpty(t, f.Results)
		return f.Results
	}
	times := [2]map[string][]float64{{}, {}}
	for range pairs {
		for side, args := range [][]string{{"-e", largest}, {"-e", largest, "-time", "15ms"}} {
			for _, r := range run(args...) {
				for name, us := range map[string]float64{"out of place": r.Out.Time, "in place": r.In.Time} {
					key := fmt.Sprintf("%8d %-12s", r.Size, name)
					times[side][key] = append(times[side][key], us)
				}
			}
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(times[0])), slices.Collect(maps.Keys(times[1])))
	for _, key := range slices.Sorted(maps.Keys(times[1])) {
		quick, long := stat.Median(times[0][key]), stat.Median(times[1][key])
		t.Logf("%s %9.3f us by default, %9.3f with -time 15ms, ratio %.3f", key, quick, long, quick/long)
		if math.Abs(quick/long-1) > 0.15 && *firstPairs > 0 {
			t.Errorf("%s: the medians differ by more than 15 %%: is the machine quiet?", key)
		}
	}
	if *firstPairs == 0 {
		return
	}
	began := time.Now()
	run()
	require.LessOrEqual(t, time.Since(began), 10*time.Second, "a default run of the curve")
}
