package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
)

func TestJSON(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f := NewFile([]string{"bench", "-op", "allreduce"}, []string{"PATH=/bin", "GOCCL_ALGO=ring", "AWS_SECRET=x", "GOCCL_SECRET=y"}, now)
	o := option.Default()
	f.Goccl, f.Config.Ranks, f.Config.Devices = "0.1.0", 2, []Place{{Rank: 0, Pid: 7, Host: "h", Hex: "cpu", Info: "c"}}
	f.Describe(&o)
	var s Summary
	for _, r := range goldenRows() {
		r.Op = "allreduce"
		f.Results = append(f.Results, r)
		s.Add(&r)
	}
	path := filepath.Join(t.TempDir(), "out.json")
	f.Close(&s, now.Add(time.Second))
	require.NoError(t, f.Save("J", path, (*File).JSON))

	b, err := os.ReadFile(path)
	require.NoError(t, err)
	var got map[string]any
	require.NoError(t, json.Unmarshal(b, &got))
	require.Equal(t, "goccl-bench/2", got["goccl"].(map[string]any)["schema"])
	require.Equal(t, "2026-01-02 03:04:05", got["start_time"])
	require.Equal(t, "2026-01-02 03:04:06", got["end_time"])
	require.Equal(t, []any{"GOCCL_ALGO=ring"}, got["env"])
	require.Equal(t, []any{"bench", "-op", "allreduce"}, got["args"])
	require.Equal(t, map[string]any{"count": 1e6, "okay": "false"}, got["out_of_bounds"])
	require.Contains(t, got["average_bus_bandwidth"], "bandwidth")
	require.Equal(t, []any{}, got["errors"])

	config := got["config"].(map[string]any)
	for name, want := range map[string]any{"nthreads": 1.0, "minimum_bytes": 8.0, "maximum_bytes": 67108864.0, "step_factor": 2.0,
		"warmup_iters": 1.0, "iterations": 20.0, "aggregated_iterations": 1.0, "validation": 1.0, "ngpus": 1.0,
		"graph": 0.0, "blocking_collectives": "false", "per_iter_timing": "false", "per_iter_skip": 0.0, "parallel_init": "true"} {
		require.Equal(t, want, config[name], name)
	}
	require.Equal(t, map[string]any{"rank": 0.0, "group": 0.0, "pid": 7.0, "hostname": "h", "device": 0.0, "device_hex": "cpu", "device_info": "c"},
		config["devices"].([]any)[0])

	rows := got["results"].([]any)
	require.Len(t, rows, 3)
	first := rows[0].(map[string]any)
	for name, want := range map[string]any{"size": 1048576.0, "count": 262144.0, "type": "float", "redop": "sum", "root": "-1", "actual_iterations": 0.0, "experiment_name": ""} {
		require.Equal(t, want, first[name], name)
	}
	half := first["out_of_place"].(map[string]any)
	require.Equal(t, 339.61, half["time"])
	require.Equal(t, 3.0876, half["alg_bw"])
	require.Equal(t, 3.0876, half["bus_bw"])
	require.Equal(t, 0.0, half["nwrong"])
	unchecked := rows[1].(map[string]any)["out_of_place"].(map[string]any)
	require.Contains(t, unchecked, "nwrong")
	require.Nil(t, unchecked["nwrong"])
	require.Equal(t, 0.0, unchecked["bus_bw"])
	require.Equal(t, "allreduce", first["goccl"].(map[string]any)["op"])
}

func TestAllowed(t *testing.T) {
	require.Equal(t, []string{"GOMAXPROCS=2", "NCCL_ALGO=Ring", "RANK=1"},
		Allowed([]string{"RANK=1", "HOME=/root", "GITHUB_TOKEN=t", "NCCL_ALGO=Ring", "NCCL_API_KEY=k", "GOMAXPROCS=2", "=C:=C:\\", "RANKLE=1"}))
}

func TestWritable(t *testing.T) {
	dir := t.TempDir()
	fresh := filepath.Join(dir, "new.json")
	require.NoError(t, Writable("J", fresh))
	require.NoFileExists(t, fresh)

	old := filepath.Join(dir, "old.json")
	require.NoError(t, os.WriteFile(old, []byte("kept"), 0o600))
	require.NoError(t, Writable("J", old))
	b, err := os.ReadFile(old)
	require.NoError(t, err)
	require.Equal(t, "kept", string(b))

	nowhere := filepath.Join(dir, "no", "x.json")
	require.ErrorContains(t, Writable("J", nowhere), "-J "+nowhere+": it cannot be written: ")
	require.ErrorContains(t, Writable("J", dir), "it cannot be written: ")
}

func TestSaveToAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil || runtime.GOOS != "linux" {
		t.Skip("needs /dev/full")
	}
	err := NewFile(nil, nil, time.Now()).Save("J", "/dev/full", (*File).JSON)
	require.EqualError(t, err, "-J /dev/full: the results could not be written: no space left on device")
}
