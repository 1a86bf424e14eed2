package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

// The programs are slower by what they are told, and as fast as ever where they are told nothing: the shortest of many calls, in one
// of several turns. Each turn is compared with itself, since how fast the processors are changes from one to the next.
func TestPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: builds bench twice, and measures")
	}
	cache.Whole()
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
	var seen []string
	for range 10 {
		plain := least(sides[0], "0")
		by50, by200 := least(sides[1], "50")/plain, least(sides[1], "200")/plain
		if near(1.5, by50, 0.15) && near(3, by200, 0.2) {
			return
		}
		seen = append(seen, fmt.Sprintf("%.2f and %.2f times %.2f us", by50, by200, plain))
	}
	t.Errorf("50 %% and 200 %% slower are %s", strings.Join(seen, ", "))
}
