package proc

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A thread moves to each processor on which it may run, and may run wherever it might before; to others it does not.
func TestElsewhere(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var may, after unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &may))
	for core := range len(may) * 64 {
		got := Elsewhere(func(k int) bool { return k == core })
		if !may.IsSet(core) {
			require.Equal(t, -1, got, core)
			continue
		}
		require.Equal(t, core, got)
		require.NoError(t, unix.SchedGetaffinity(0, &after))
		require.Equal(t, may, after)
	}
	// Once is enough that it is still there: the kernel may move it on.
	at := func(core int) bool {
		for range 1000 {
			if Elsewhere(func(k int) bool { return k == core }) == core && Core() == core {
				return true
			}
		}
		return false
	}
	for core := range len(may) * 64 {
		if may.IsSet(core) {
			require.True(t, at(core), core)
		}
	}
}
