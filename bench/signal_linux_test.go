package main_test

import (
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A signal ends each command wherever it waits: here for somebody to read what it says.
func TestSignalsEndAllCommands(t *testing.T) {
	for _, args := range []string{"-h", "compare -h", "fit -h", "trace -h", "launch -h"} {
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
			if signal.Ignored(sig) {
				continue
			}
			t.Run(args+" "+sig.String(), func(t *testing.T) {
				var full [2]int // a pipe without room
				require.NoError(t, syscall.Pipe2(full[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC))
				defer syscall.Close(full[0])
				for n := 1; n > 0; {
					n, _ = syscall.Write(full[1], make([]byte, 1))
				}
				require.NoError(t, syscall.SetNonblock(full[1], false))
				out := os.NewFile(uintptr(full[1]), "full")
				defer out.Close()
				cmd := exec.Command(program, strings.Fields(args)...)
				cmd.Env, cmd.Stdout = clean(), out
				require.NoError(t, cmd.Start())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					cmd.Wait()
				}()
				for kill := time.After(time.Minute); ; {
					select {
					case <-ended: // by itself, or by the kernel where the signal came before bench was ready for it
						if state := cmd.ProcessState; state.Exited() {
							require.Equal(t, 1, state.ExitCode())
						}
						return
					case <-kill:
						cmd.Process.Kill()
						t.Fatal("no signal ends it")
					case <-time.After(100 * time.Millisecond):
						cmd.Process.Signal(sig)
					}
				}
			})
		}
	}
}
