package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The programs are slower by what they are told, and as fast as ever where they are told nothing: the shortest of
// many calls, in as many runs as it takes, since what else runs on the machine only makes calls longer.
func TestPrograms(t *testing.T) {
	sides, err := programs(t.TempDir())
	require.NoError(t, err)
	least := func(program, slowdown string) float64 {
		file := filepath.Join(t.TempDir(), "out.json")
		cmd := exec.Command(program, "-np", "2", "-b", "32K", "-e", "32K", "-n", "2000", "-c", "0", "-J", file)
		cmd.Env = append(os.Environ(), variable+"="+slowdown)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var f struct {
			Results []struct {
				Iter struct {
					Least float64 `json:"min_us"`
				} `json:"out_of_place_per_iter"`
			}
		}
		require.NoError(t, json.Unmarshal(text, &f))
		require.Len(t, f.Results, 1)
		return f.Results[0].Iter.Least
	}
	near := func(want, ratio, epsilon float64) bool { return math.Abs(ratio-want) <= epsilon*want }
	plain, by50, by200 := math.Inf(1), math.Inf(1), math.Inf(1)
	for range 10 {
		plain = min(plain, least(sides[0], "0"))
		by50 = min(by50, least(sides[1], "50"))
		by200 = min(by200, least(sides[1], "200"))
		if near(1.5, by50/plain, 0.15) && near(3, by200/plain, 0.2) {
			return
		}
	}
	t.Errorf("50 %% and 200 %% slower are %.2f and %.2f times %.2f us", by50/plain, by200/plain, plain)
}
