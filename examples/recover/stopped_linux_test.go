package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// TestStoppedProcess is what the processes run that TestStoppedRankEnds starts: rank 1 is stopped in a step, and goes on
// when the others have. These end after it.
func TestStoppedProcess(t *testing.T) {
	dir := os.Getenv("RECOVER_TEST")
	if dir == "" {
		return
	}
	c, err := ccl.Join(t.Context(), &ccl.Options{PeerTimeout: 2 * time.Second}) // far longer than a loaded machine keeps a process waiting
	require.NoError(t, err)
	me, tr := c.Rank(), newTraining(c)
	mark := func(what string, rank int) string { return filepath.Join(dir, fmt.Sprint(what, rank)) }
	tr.before = func(step int) {
		switch {
		case me == 1 && step == 50:
			goOn := fmt.Sprintf("(for i in $(seq 1200); do test -e %s -a -e %s && break; sleep 0.05; done; kill -CONT %d) >/dev/null 2>&1 &", mark("on", 0), mark("on", 2), os.Getpid())
			require.NoError(t, exec.Command("sh", "-c", goOn).Run())
			require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGSTOP))
		case me != 1 && tr.comm.Size() == 2 && step < steps-1:
			require.NoError(t, os.WriteFile(mark("on", me), nil, 0o600))
		case me != 1 && step == steps-1:
			require.Eventually(t, func() bool { _, err := os.Stat(mark("ended", 1)); return err == nil }, time.Minute, time.Millisecond, "rank 1 ends")
		}
	}
	defer os.WriteFile(mark("ended", me), nil, 0o600)
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
			Args: []string{"-test.run=^TestStoppedProcess$", "-test.timeout=2m"}, Env: append(os.Environ(), "RECOVER_TEST="+t.TempDir()), Stdout: &out, Stderr: &out})
		text := out.String()
		require.NoError(t, err, "%.9000s", text)
		require.Contains(t, text, "rank 1 has ended: ccl: rank 1: Shrink: rank 1 lost: the others have given this rank up\n", text)
		for _, r := range []int{0, 2} {
			require.Contains(t, text, fmt.Sprintf("rank %d: %d steps with 2 ranks\n", r, steps), text)
		}
		require.Less(t, strings.Count(text, "\n"), 50, "%.2000s", text)
	}
}
