//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/lent"
)

func TestLeak(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		var mu sync.Mutex
		var told []string
		lent.OnLeak(func(text string) {
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(text, "leak_test.go") { // other tests may forget something as well
				told = append(told, text)
			}
		})
		defer lent.OnLeak(nil)
		forget(t, d)
		want := []string{
			pkg + ": device 0: 8 bytes of device memory, made at leak_test.go:57, was never released",
			pkg + ": device 0: 8 bytes of pinned host memory, made at leak_test.go:61, was never released",
			pkg + ": device 0: event, made at leak_test.go:65, was never released",
			pkg + ": device 0: stream, made at leak_test.go:63, was never released",
		}
		require.Eventually(t, func() bool {
			runtime.GC()
			mu.Lock()
			defer mu.Unlock()
			slices.Sort(told)
			return slices.Equal(want, told)
		}, 20*time.Second, time.Millisecond, "want %q, told %q", want, told)
	})
}

// forget gives nothing back but a graph and one Mem.
//
//go:noinline
func forget(t *testing.T, d gputest.Device) {
	kept, err := gpu.Alloc[float32](d, 1)
	require.NoError(t, err)
	require.NoError(t, kept.Free())
	x, err := gpu.Alloc[float64](d, 1)
	require.NoError(t, err)
	_, err = x.Part(0, 1)
	require.NoError(t, err)
	_, err = gpu.AllocHost[float64](d, 1)
	require.NoError(t, err)
	_, err = d.NewStream()
	require.NoError(t, err)
	_, err = d.NewEvent()
	require.NoError(t, err)
}
