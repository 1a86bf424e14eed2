//go:build linux && cgo && nccl

package ddp_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/device"
)

// memoryOf is a Memory on the device of this rank, and its stream.
func memoryOf(t testing.TB, c *ccl.Comm) (*device.Memory, *cuda.Stream) {
	t.Helper()
	d, err := cuda.Local(c.Place().Local, c.Place().Locals)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	m, err := device.New(d, s)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, s.Close())
	})
	return m, s
}

func bytesOf(s []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 4*len(s))
}

// Gradients on a device are averaged, with the Hook and without, where each step has others.
func TestDeviceGradients(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m, s := memoryOf(t, c)
		lens := []int{1, 1000, 3, 70_001, 5}
		for _, tc := range []struct {
			hook ddp.Hook
			use  bool
		}{{nil, false}, {nil, true}, {ddp.BFloat16On(m), false}, {ddp.BFloat16On(m), true}} {
			var sets [2][]ccl.Buf
			for i := range sets {
				for _, n := range lens {
					b, err := m.Alloc(ccl.TypeFloat32, n)
					require.NoError(t, err)
					sets[i] = append(sets[i], b)
				}
			}
			r := newReducer(t, c, sets[0], &ddp.Options{FirstBytes: 1, Bytes: 1 << 13, Hook: tc.hook, Stream: func(int) ccl.Stream { return s }})
			for step := range 4 {
				set := sets[0]
				if tc.use {
					set = sets[step%2]
					require.NoError(t, r.Use(set))
				}
				for i, b := range set {
					g := make([]float32, b.Len())
					for k := range g {
						g[k] = float32(2*c.Rank()+1) * float32(2+k%5+i+step)
					}
					require.NoError(t, m.Put(b, bytesOf(g)))
				}
				require.NoError(t, r.All(t.Context()))
				for i, b := range set {
					g := make([]float32, b.Len())
					require.NoError(t, m.Get(bytesOf(g), b))
					for k := range g {
						if want := 2 * float32(2+k%5+i+step); g[k] != want {
							t.Fatalf("step %d, gradient %d: element %d is %v, not %v", step, i, k, g[k], want)
						}
					}
				}
			}
			require.NoError(t, r.Close())
			for _, set := range sets {
				for _, b := range set {
					require.NoError(t, m.Free(b))
				}
			}
		}
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}

// With what the Hook keeps Close is done: the device has as much free memory as before.
func TestDeviceHookFrees(t *testing.T) {
	gputest.Fake(t, "other processes use the device")
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		m, s := memoryOf(t, c)
		d, err := cuda.At(0)
		require.NoError(t, err)
		b, err := m.Alloc(ccl.TypeFloat32, 100)
		require.NoError(t, err)
		free, _, err := d.Memory()
		require.NoError(t, err)
		r := newReducer(t, c, []ccl.Buf{b}, &ddp.Options{Hook: ddp.BFloat16On(m), Stream: func(int) ccl.Stream { return s }})
		for range 3 {
			require.NoError(t, r.Use([]ccl.Buf{b}))
			require.NoError(t, r.All(t.Context()))
		}
		require.NoError(t, r.Close())
		left, _, err := d.Memory()
		require.NoError(t, err)
		require.Equal(t, free, left)
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}

// failing is a Memory that does not convert, or allocate.
type failing struct {
	*device.Memory
	alloc, convert error
}

func (f failing) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	if f.alloc != nil {
		return ccl.Buf{}, f.alloc
	}
	return f.Memory.Alloc(t, n)
}

func (f failing) Convert(dst, src ccl.Buf) error {
	if f.convert != nil {
		return f.convert
	}
	return f.Memory.Convert(dst, src)
}

// A rank whose Hook fails does not leave the others waiting: they get its reason.
func TestDeviceHookFails(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	for name, tc := range map[string]struct {
		f    func(m *device.Memory, other *device.Memory) ddp.Hook
		want string
	}{
		"no memory": {func(m, _ *device.Memory) ddp.Hook {
			return ddp.BFloat16On(failing{Memory: m, alloc: errors.New("none left")})
		}, "ddp.BFloat16On: none left"},
		"a kernel": {func(m, _ *device.Memory) ddp.Hook {
			return ddp.BFloat16On(failing{Memory: m, convert: errors.New("broken")})
		}, "ddp.BFloat16On: broken"},
		"another stream": {func(_, other *device.Memory) ddp.Hook { return ddp.BFloat16On(other) }, "ddp.BFloat16On: Options.Stream is another stream than the memory's"},
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				m, s := memoryOf(t, c)
				other, _ := memoryOf(t, c)
				b, err := m.Alloc(ccl.TypeFloat32, 10)
				require.NoError(t, err)
				hook := ddp.BFloat16On(m)
				if c.Rank() == 1 {
					hook = tc.f(m, other)
				}
				r, err := ddp.New(t.Context(), c, []ccl.Buf{b}, &ddp.Options{Hook: hook, Stream: func(int) ccl.Stream { return s }})
				if err == nil { // else rank 1 has gone on and failed before this rank was told that all agree
					err = r.All(t.Context())
					require.NoError(t, r.Close())
				}
				require.ErrorContains(t, err, tc.want)
				require.ErrorContains(t, c.Err(), tc.want)
			}, ccltest.With(ccl.Options{Backend: "nccl"}))
		})
	}
}
