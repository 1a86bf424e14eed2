//go:build mpi && cgo

package mpi_test

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// resident is the process's memory in bytes.
func resident(t *testing.T) int {
	debug.FreeOSMemory() // what Go itself keeps for later is no leak
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(b))[1])
	require.NoError(t, err)
	return pages * os.Getpagesize()
}

// flat runs f n times, after a tenth of that to warm up, and sees that memory does not grow by more
// than two bytes a time, or 4 MiB.
func flat(t *testing.T, n int, f func()) {
	if testing.Short() {
		n /= 100
	}
	for range n / 10 {
		f()
	}
	before := resident(t)
	for range n {
		f()
	}
	grown := resident(t) - before
	require.Less(t, grown, max(4<<20, 2*n), "%d bytes a time", grown/n)
}

func TestNoLeakOfCommunicators(t *testing.T) {
	flat(t, 10_000, func() {
		c, err := mpi.World().Split(0, 0)
		require.NoError(t, err)
		require.NoError(t, c.Free())
	})
}

func TestNoLeakOfErrors(t *testing.T) {
	if !judges(t) {
		return
	}
	flat(t, 1_000_000, func() {
		if badRoot(context.Background(), mpi.Self()) == nil {
			t.Fatal("no error")
		}
	})
}

func TestNoLeakOfRequests(t *testing.T) {
	c := mpi.Self()
	counts := []int{3}
	flat(t, 100_000, func() {
		dst, src := make([]int32, 3), make([]int32, 3)
		r, err := c.Start(&mpi.Call{Kind: mpi.KindAllGatherV, Type: mpi.TypeInt32, N: 3, DC: counts, Dst: address(dst), Src: address(src)})
		require.NoError(t, err)
		_, err = r.Wait(t.Context()) // polled
		require.NoError(t, err)
		runtime.KeepAlive(dst)
		runtime.KeepAlive(src)
	})
}

func address(buf []int32) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(buf))) }

// TestNoLeakOfGoroutines has collectives whose contexts can end, which goroutines of their own make.
func TestNoLeakOfGoroutines(t *testing.T) {
	c := mpi.World()
	before := runtime.NumGoroutine()
	flat(t, 20_000, func() {
		dst, src := make([]int32, 3), make([]int32, 3)
		require.NoError(t, mpi.AllReduce(t.Context(), c, dst, src, mpi.Sum))
	})
	within(t, func() {
		for runtime.NumGoroutine() > before {
			time.Sleep(time.Millisecond)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	ctx, c := context.Background(), mpi.Self()
	dst, src := make([]float64, 1), make([]float64, 1)
	if mpi.ThreadLevel() == mpi.Multiple {
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = mpi.AllReduce(ctx, c, dst, src, mpi.Sum) }))
	}
}
