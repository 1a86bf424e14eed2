package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestStoppedProcess is what the processes run that TestStoppedRankEnds starts: rank 1 is stopped in a step, and goes on
// later.
func TestStoppedProcess(t *testing.T) {
	if os.Getenv("RECOVER_TEST") == "" {
		return
	}
	c, err := ccl.Join(t.Context(), &ccl.Options{PeerTimeout: time.Second})
	require.NoError(t, err)
	me, tr := c.Rank(), newTraining(c)
	tr.before = func(step int) {
		if me == 1 && step == 50 {
			require.NoError(t, exec.Command("sh", "-c", fmt.Sprintf("(sleep 2.5; kill -CONT %d) >/dev/null 2>&1 &", os.Getpid())).Run())
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		}
	}
	if err := tr.run(t.Context()); err != nil {
		fmt.Printf("rank %d has ended: %v\n", me, err)
	} else {
		fmt.Printf("rank %d: %d steps with %d ranks\n", me, tr.step, tr.comm.Size())
	}
	tr.comm.Close()
}

// A rank that is stopped until the others have given it up, and then goes on, ends with one error. The others train on
// without it.
func TestStoppedRankEnds(t *testing.T) {
	for _, hosts := range []int{0, 3} {
		if testing.Short() && hosts == 0 {
			continue
		}
		var out bytes.Buffer
		err := boot.Spawn(t.Context(), boot.Command{N: 3, Hosts: hosts, Path: os.Args[0], KeepGoing: true,
			Args: []string{"-test.run=^TestStoppedProcess$", "-test.timeout=30s"}, Env: append(os.Environ(), "RECOVER_TEST=1"), Stdout: &out, Stderr: &out})
		text := out.String()
		require.NoError(t, err, "%.9000s", text)
		require.Contains(t, text, "rank 1 has ended: ccl: rank 1: Shrink: rank 1 lost: the others have given this rank up\n", text)
		for _, r := range []int{0, 2} {
			require.Contains(t, text, fmt.Sprintf("rank %d: %d steps with 2 ranks\n", r, steps), text)
		}
		require.Less(t, strings.Count(text, "\n"), 50, "%.2000s", text)
	}
}
