package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// heedInterrupt has the processes that a test starts heed an interrupt, though the test ignores it, as a program does
// that a script has started with &: a signal that is caught here is not ignored there.
func heedInterrupt(t *testing.T) {
	if signal.Ignored(os.Interrupt) {
		caught := make(chan os.Signal, 1)
		signal.Notify(caught, os.Interrupt)
		t.Cleanup(func() { signal.Stop(caught) })
	}
}

// Ctrl-C reaches all processes of the terminal: the step under way ends, one checkpoint is made, and the exit code is 0. timeout
// signals a program, and then its group: what it sends twice is one wish.
func TestSignals(t *testing.T) {
	heedInterrupt(t)
	for _, tc := range []struct {
		sig   syscall.Signal
		times int
	}{{syscall.SIGINT, 1}, {syscall.SIGINT, 3}, {syscall.SIGTERM, 3}} {
		t.Run(fmt.Sprintf("%d of %v", tc.times, tc.sig), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			cmd, out := program(t, small+"1000000 -np 2 -log 1 -save "+dir)
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			require.NoError(t, cmd.Start())
			until(t, out, "step=3 ")
			for range tc.times {
				require.NoError(t, syscall.Kill(-cmd.Process.Pid, tc.sig))
			}
			require.NoError(t, cmd.Wait(), "%s", out)
			require.Contains(t, out.String(), "interrupted after step ")
			require.Contains(t, out.String(), "saved step ")
			es, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, es, 1, "one Save: %s", out)
		})
	}
}

// A second one ends all ranks at once, in the middle of a step.
func TestSecondSignal(t *testing.T) {
	heedInterrupt(t)
	cmd, out := program(t, "-preset babygpt -rows 256 -np 2 -log 1") // a step takes more than a minute
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(t, cmd.Start())
	until(t, out, "% of the cores' peak") // the last line before the first step
	over := make(chan error, 1)
	go func() { over <- cmd.Wait() }()
	again := time.NewTicker(100 * time.Millisecond) // signals that come together count as one
	defer again.Stop()
	for {
		select {
		case err := <-over:
			exits(t, 130, err, out)
			require.NotContains(t, out.String(), "step=1 ")
			return
		case <-again.C:
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGINT)
		}
	}
}

// A disk that becomes full ends the run with the name of the file, and the last checkpoint stays whole.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("goccl", dir, "tmpfs", 0, "size=2m"); err != nil {
		why := "a small file system takes root: " + err.Error()
		if os.Getenv("GOCCL_REQUIRE") == "all" {
			t.Fatal(why)
		}
		t.Skip("NOT RUN: " + why)
	}
	defer func() { require.NoError(t, syscall.Unmount(dir, 0)) }()
	save := filepath.Join(dir, "c")
	cmd, out := program(t, small+"40 -np 2 -log 1 -every 1 -keep 100 -save "+save)
	exits(t, 1, cmd.Run(), out)
	require.Regexp(t, `write \S*step-\d+\.tmp-\S+: no space left on device`, out.String())
	require.NotContains(t, out.String(), "step=40 ")
	whole, err := filepath.Glob(filepath.Join(save, "step-????????"))
	require.NoError(t, err)
	require.NotEmpty(t, whole)
	cmd, out = program(t, small+"40 -np 2 -log 1 -resume -save "+save)
	exits(t, 1, cmd.Run(), out) // the disk is still full
	require.Contains(t, out.String(), "going on from "+whole[len(whole)-1])
	require.Contains(t, out.String(), "step=40 ", "it has no -every, so it fails at the end")
}
