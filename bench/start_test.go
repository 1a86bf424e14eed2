package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// In an allocation that there is no launcher for, nothing runs on one node in silence.
func TestAllocationWithoutLauncher(t *testing.T) {
	env := []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "PATH=" + t.TempDir()}
	out, errs, status := bench(t, env, "-e", "64")
	require.Equal(t, 2, status)
	require.Empty(t, out)
	require.Equal(t, "bench: no srun in PATH to start ranks on the nodes with: load its module, name one with -launcher, or stay on this machine with -launcher local\n", errs)

	out = well(t, env, "-e", "64", "-np", "2", "-launcher", "local")
	require.Contains(t, out, "# ranks: 2  processes: 2 (started here)")
}

// -dry-run says what would be started, and starts nothing.
func TestDryRun(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("there is no srun here")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "srun"), []byte("#!/bin/sh\ntouch "+dir+"/started\n"), 0o755))
	env := []string{"SLURM_JOB_ID=7", "SLURM_JOB_NUM_NODES=2", "SLURM_NTASKS=4", "SLURM_CLUSTER_NAME=frontier", "PATH=" + dir}
	out, errs, status := bench(t, env, "-dry-run", "-op", "allreduce")
	require.Zero(t, status)
	require.Empty(t, errs)
	for _, want := range []string{
		"4 ranks on 2 nodes, 2 each (as the Slurm allocation has it)", "profile frontier", "NCCL_SOCKET_IFNAME=hsn0,hsn1,hsn2,hsn3: ",
		dir + "/srun --nodes=2 --ntasks=4 --ntasks-per-node=2", "--gpu-bind=closest", "-op allreduce",
	} {
		require.Contains(t, out, want)
	}
	require.NoFileExists(t, filepath.Join(dir, "started"))
	for line := range strings.Lines(out) {
		require.True(t, strings.HasPrefix(line, "# launch: "), line)
		require.NotContains(t, line, "-dry-run", "what is printed can be run")
	}
}

// Where the limit of open files is too low, bench says so in a line of at most 120 columns, with a limit that is enough.
func TestFewFiles(t *testing.T) {
	if filepath.Separator != '/' {
		t.Skip("there is no ulimit here")
	}
	for _, args := range [][]string{{"-np", "6", "-e", "64"}, {"launch", "-np", "6", "--", "true"}} {
		for _, files := range []string{"12", "20"} { // too few for a pipe, and to start a process
			sh := append([]string{"-c", "ulimit -n " + files + `; exec "$@"`, "sh", program}, args...)
			out, errs, status := started(t, nil, "sh", sh...)
			require.NotZero(t, status)
			require.Empty(t, out)
			line := strings.TrimSuffix(errs, "\n")
			require.Regexp(t, `^bench.*: boot: rank \d('s output cannot be set up| cannot be started): too many open files; 6 ranks need some 42: raise ulimit -n$`, line)
			require.LessOrEqual(t, len(line), 120)
		}
	}
}

// -q leaves the table, and nothing else.
func TestQuiet(t *testing.T) {
	out, errs, status := bench(t, nil, "-np", "2", "-e", "64", "-q")
	require.Zero(t, status)
	require.Empty(t, errs)
	require.NotContains(t, out, "goccl")
	require.Contains(t, out, "#       size         count")
	require.Contains(t, out, "# Out of bounds values : 0 OK")
}
