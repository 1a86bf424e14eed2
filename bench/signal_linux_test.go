package main_test

import (
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal ends each command wherever it waits: here for what a pipe has to say.
func TestSignalsEndAllCommands(t *testing.T) {
	dir := t.TempDir()
	pipe, traces := filepath.Join(dir, "pipe"), filepath.Join(dir, "traces")
	require.NoError(t, os.Mkdir(traces, 0o700))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	trace := filepath.Join(traces, "rank-0.jsonl")
	require.NoError(t, syscall.Mkfifo(trace, 0o600))
	for _, args := range [][]string{{"compare", pipe, pipe}, {"fit", pipe}, {"trace", traces}} {
		waits := pipe
		if args[0] == "trace" {
			waits = trace
		}
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			if signal.Ignored(sig) {
				continue
			}
			t.Run(args[0]+" "+sig.String(), func(t *testing.T) {
				cmd := exec.Command(program, args...)
				cmd.Env = clean()
				var said strings.Builder
				cmd.Stdout, cmd.Stderr = &said, &said
				require.NoError(t, cmd.Start())
				kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
				defer kill.Stop()
				var writer *os.File // which writes nothing; there is one as soon as there is a reader
				require.Eventually(t, func() (open bool) {
					f, err := os.OpenFile(waits, os.O_WRONLY|syscall.O_NONBLOCK, 0)
					writer = f
					return err == nil
				}, time.Minute, time.Millisecond)
				defer writer.Close()
				require.NoError(t, cmd.Process.Signal(sig))
				cmd.Wait()
				require.Equal(t, 1, cmd.ProcessState.ExitCode(), "%v: %s", cmd.ProcessState, said.String())
			})
		}
	}
}
