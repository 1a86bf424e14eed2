package main_test

import (
	"bytes"
	"fmt"
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

// A signal ends each command wherever it waits, here for somebody to read what it says: it says so itself, and leaves no
// end to the kernel.
func TestSignalsEndAllCommands(t *testing.T) {
	for _, args := range []string{"-h", "version", "ab -h", "compare -h", "plan -h", "trace -h", "doctor -h", "launch -h"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
			if signal.Ignored(sig) {
				continue
			}
			t.Run(args+" "+sig.String(), func(t *testing.T) {
				t.Parallel()
				var errs bytes.Buffer
				cmd := exec.Command(program, strings.Fields(args)...)
				cmd.Env, cmd.Stdout, cmd.Stderr = clean(), fullPipe(t), &errs
				require.NoError(t, cmd.Start())
				kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
				defer kill.Stop()
				for !writes(cmd.Process.Pid) && cmd.Process.Signal(syscall.Signal(0)) == nil {
					time.Sleep(time.Millisecond)
				}
				require.NoError(t, cmd.Process.Signal(sig))
				cmd.Wait()
				require.Equal(t, "exit status 1", cmd.ProcessState.String(), errs.String())
				require.Equal(t, "bench: interrupted\n", errs.String())
			})
		}
	}
}

// fullPipe is the end of a pipe at which a write waits for the end of the test.
func fullPipe(t *testing.T) *os.File {
	t.Helper()
	var ends [2]int
	require.NoError(t, syscall.Pipe2(ends[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC))
	for n := 1; n > 0; {
		n, _ = syscall.Write(ends[1], make([]byte, 1))
	}
	require.NoError(t, syscall.SetNonblock(ends[1], false))
	full := os.NewFile(uintptr(ends[1]), "full")
	t.Cleanup(func() { full.Close(); syscall.Close(ends[0]) })
	return full
}

// writes reports whether a thread of the process is in a write to its standard output.
func writes(pid int) bool {
	calls, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, file := range calls {
		if call, err := os.ReadFile(file); err == nil && strings.HasPrefix(string(call), fmt.Sprintf("%d 0x1 ", syscall.SYS_WRITE)) {
			return true
		}
	}
	return false
}
