//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// Goroutines change threads, and threads have a device: every call goes to its own device all the same.
func TestGoroutinesOnAllDevices(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, _ gputest.Device) {
		all, err := rt.Devices()
		assert.NoError(t, err)
		var wg sync.WaitGroup
		for g := range 4 * len(all) {
			d := all[g%len(all)]
			wg.Go(func() {
				s, err := d.NewStream()
				assert.NoError(t, err)
				defer s.Close()
				e, err := d.NewMark()
				assert.NoError(t, err)
				defer e.Close()
				h, err := gpu.AllocHost[int32](d, 100)
				assert.NoError(t, err)
				defer h.Free()
				for i := range 20 {
					x, err := gpu.Alloc[int32](d, 100)
					assert.NoError(t, err)
					p, _ := x.Ptr()
					assert.NoError(t, d.Owns(p), "memory of %v", d)
					assert.NoError(t, x.Put(ramp(100, g+i)))
					assert.NoError(t, x.GetOn(s, h))
					assert.NoError(t, e.Record(s))
					assert.NoError(t, e.Synchronize())
					assert.Equal(t, ramp(100, g+i), h.Slice())
					assert.NoError(t, x.Free())
				}
			})
		}
		wg.Wait()
	})
}

// Of goroutines that free one memory, one does, and the others and those that ask are told.
func TestGoroutinesFreeOnce(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		x, err := gpu.Alloc[int32](d, 100)
		assert.NoError(t, err)
		var wg sync.WaitGroup
		freed := make(chan struct{}, 8)
		for range cap(freed) {
			wg.Go(func() {
				x.Ptr()
				if err := x.Free(); err == nil {
					freed <- struct{}{}
				} else {
					assert.ErrorIs(t, err, gpu.ErrClosed)
				}
				_, ok := x.Ptr()
				assert.False(t, ok)
			})
		}
		wg.Wait()
		assert.Len(t, freed, 1)
	})
}
