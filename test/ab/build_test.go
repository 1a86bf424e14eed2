package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The programs are slower by what they are told, and as fast as ever where they are told nothing: the shortest of
// many calls, since other programs only make calls longer.
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
	plain := least(sides[0], "0")
	require.InEpsilon(t, 1.5, least(sides[1], "50")/plain, 0.15)
	require.InEpsilon(t, 3, least(sides[1], "200")/plain, 0.2)
}
