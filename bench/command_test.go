package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two stored runs go through compare.
func TestStoredRuns(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for _, args := range []string{"-np 2 -e 4M -f 4", "-np 2 -e 256K -hosts 2"} {
		file := filepath.Join(dir, strings.ReplaceAll(args, " ", "")+".json")
		well(t, nil, append(strings.Fields(args), "-J", file)...)
		files = append(files, file)
	}
	_, errs, status := bench(t, nil, "compare", files[0], files[0])
	require.Equal(t, 2, status)
	require.Contains(t, errs, "are the same run, on both sides")

	// Runs of different settings are said to be, whatever the times.
	out, _, _ := bench(t, nil, "compare", files[0], files[1])
	require.Contains(t, out, "differs: hosts: 1 -> 2\ndiffers: transport: shared memory -> ")

	out = well(t, nil, "plan", "-inside", "1,10", "-between", "30,3", "-nodes", "4", "-ppn", "2")
	require.Contains(t, out, "zero3")
}

func TestAB(t *testing.T) {
	out := well(t, nil, "ab", "-env", "GOCCL_TEST_NOTHING=1", "-rounds", "10", "-threshold", "100000", "--", "-np", "2", "-b", "64", "-e", "64", "-n", "20")
	require.Equal(t, 11, strings.Count(out, "\n"), out)
	require.Contains(t, out, "10 rounds of 2 lines")
}

// The version by each of its names, and the help of each command.
func TestVersionAndHelp(t *testing.T) {
	version := well(t, nil, "version")
	require.True(t, strings.HasPrefix(version, "bench of goccl "), version)
	for _, flag := range []string{"-version", "--version"} {
		out := well(t, nil, flag)
		require.Equal(t, version, out)
	}
	for _, command := range []string{"ab", "compare", "plan", "trace", "doctor", "launch"} {
		out := well(t, nil, "help", command)
		require.True(t, strings.HasSuffix(out, ".\n") && !strings.HasSuffix(out, "\n\n"), "%s: %q", command, out)
	}
}

// Both programs are the same, by two names.
func TestTwoNames(t *testing.T) {
	for _, file := range []string{"main.go", "goccl-bench/main.go"} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		_, body, found := strings.Cut(string(text), "package main\n")
		require.True(t, found)
		require.Equal(t, "\nimport (\n\t\"os\"\n\n\t\"github.com/goccl/goccl/bench/internal/harness\"\n)\n\nfunc main() {\n\tos.Exit(harness.Main(os.Args))\n}\n", body)
	}
}

// The flight recorders of a job's processes become one timeline, with slices of each rank.
func TestTimelineOfAJob(t *testing.T) {
	dir := t.TempDir()
	well(t, []string{"GOCCL_TRACE=" + filepath.Join(dir, "trace")}, "launch", "-np", "2", "-hosts", "2", "--", hello)
	file := filepath.Join(dir, "t.json")
	out := well(t, nil, "trace", "-perfetto", file, filepath.Join(dir, "trace"))
	require.Contains(t, out, "nothing went wrong")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var timeline struct {
		TraceEvents []struct {
			Name, Ph string
			Pid      int
			Ts, Dur  float64
		}
	}
	require.NoError(t, json.Unmarshal(text, &timeline))
	slices := map[int]int{}
	for _, e := range timeline.TraceEvents {
		if e.Ph == "X" {
			slices[e.Pid]++
			require.Less(t, e.Ts+e.Dur, 60e6, "a minute in microseconds: %+v", e)
		}
	}
	require.Len(t, slices, 2, "%s", text)
	require.Equal(t, slices[0], slices[1])
}
