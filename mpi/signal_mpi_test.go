//go:build mpi && cgo

package mpi_test

import (
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestSignals sees that Go has its handlers after MPI_Init: on any thread a nil dereference is a
// panic that can be recovered, and a signal is what the program makes of it.
func TestSignals(t *testing.T) {
	var wg sync.WaitGroup
	for range 16 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			var p *int
			*p = 1
		}()
	}
	wg.Wait()
	for _, s := range []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2} {
		c := make(chan os.Signal, 1)
		signal.Notify(c, s)
		require.NoError(t, syscall.Kill(os.Getpid(), s))
		select {
		case got := <-c:
			require.Equal(t, s, got)
		case <-time.After(10 * time.Second):
			t.Errorf("%v did not arrive", s)
		}
		signal.Stop(c)
	}
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR1)) // unasked for: nothing happens
}
