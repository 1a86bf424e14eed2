//go:build linux && cgo && nccl

package zero_test

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/internal/vec"
	"github.com/goccl/goccl/train/zero"
)

// counting is a device.Memory that counts fences.
type counting struct {
	*device.Memory
	fences int
}

func (g *counting) Fence() error { g.fences++; return g.Memory.Fence() }

// addTo adds src, of the host, to dst, in m.
func addTo(m zero.Memory, dst, src ccl.Buf) error {
	if m == nil {
		vec.Add(dst, src)
		return nil
	}
	tmp, err := m.Alloc(src.Type(), src.Len())
	if err != nil {
		return err
	}
	return errors.Join(m.Convert(tmp, src), m.Add(dst, tmp), m.Free(tmp))
}

// onDevice trains a little with exact arithmetic, in the memory o has, and returns the masters of all ranks.
func onDevice[P zero.Float](t testing.TB, c *ccl.Comm, o zero.Options) (masters []float32) {
	ctx := t.Context()
	units := [][]int{{5, 40}, {33}, {100}}
	m := newModel[P, float32](t, c, units, &o)
	at := o.Memory // where masters are updated
	if o.Offload {
		at = nil
	}
	for i, lens := range units {
		require.NoError(t, m.Load(ctx, i, whole(lens, func(k int) float32 { return float32(k % 9) }), c.Size()-1))
	}
	for range 3 {
		for micro := range 2 {
			for i := range units {
				_, err := m.ParamBufs(ctx, i)
				require.NoError(t, err)
				m.Release(i)
			}
			for i := len(units) - 1; i >= 0; i-- {
				w, err := m.ParamBufs(ctx, i)
				require.NoError(t, err)
				g, err := m.GradBufs(ctx, i)
				require.NoError(t, err)
				for j := range g { // the gradient is (rank + 1) * (micro + 1) times the parameter's sign, of 1 micro batch
					x := make([]float32, w[j].Len())
					for k := range x {
						x[k] = float32((c.Rank() + 1) * (micro + 1) * (k%3 - 1))
					}
					more := make([]P, len(x))
					vec.Convert(ccl.BufOf(more), ccl.BufOf(x))
					require.NoError(t, addTo(o.Memory, g[j], ccl.BufOf(more)))
				}
				m.Release(i)
				require.NoError(t, m.Reduce(i))
			}
		}
		require.NoError(t, m.StepBufs(ctx, func(_ zero.Piece, w, g ccl.Buf) error {
			tmp := make([]float32, g.Len())
			if err := copyOut(at, tmp, g); err != nil {
				return err
			}
			for k := range tmp {
				tmp[k] *= -.25
			}
			return addTo(at, w, ccl.BufOf(tmp))
		}))
	}
	for i := range units {
		mine := make([]float32, m.ShardBuf(i).Len())
		require.NoError(t, copyOut(at, mine, m.ShardBuf(i)))
		if whole := mine; o.Stage > 0 {
			whole = make([]float32, len(mine)*c.Size())
			require.NoError(t, ccl.AllGather(ctx, c, whole, mine))
			mine = whole
		}
		masters = append(masters, mine...)
		p, err := m.ParamBufs(ctx, i)
		require.NoError(t, err)
		at := 0
		for _, b := range p {
			_, touchable := ccl.SliceOf[P](b)
			require.Equal(t, o.Memory == nil, touchable)
			got, want := make([]P, b.Len()), make([]P, b.Len())
			require.NoError(t, copyOut(o.Memory, got, b))
			vec.Convert(ccl.BufOf(want), ccl.BufOf(mine[at:at+b.Len()]))
			require.Equal(t, want, got, "unit %d", i)
			at += b.Len()
		}
		m.Release(i)
	}
	require.NoError(t, m.Close())
	return masters
}

func copyOut[T zero.Float](m zero.Memory, dst []T, src ccl.Buf) error {
	if g, ok := m.(*counting); ok {
		h := make([]T, src.Len())
		if err := g.Get(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(h))), len(h)*src.Type().Size()), src); err != nil {
			return err
		}
		src = ccl.BufOf(h)
	}
	vec.Convert(ccl.BufOf(dst), src)
	return nil
}

// streamOf is a stream on the device of a rank.
func streamOf(t testing.TB, c *ccl.Comm) (cuda.Device, *cuda.Stream) {
	d, err := cuda.Local(c.Place().Local, c.Place().Locals)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return d, s
}

// On a device, whose memory faults where host code touches it, all stages do what they do on the host.
func TestDeviceMemory(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		d, s := streamOf(t, c)
		for stage := range 4 {
			for _, clip := range []float64{0, 4} {
				o := zero.Options{Stage: stage, Micro: 2, Clip: clip}
				want, wide := onDevice[float32](t, c, o), onDevice[ccl.BFloat16](t, c, o)
				free, _, err := d.Memory()
				require.NoError(t, err)
				mem, err := device.New(d, s)
				require.NoError(t, err)
				g := &counting{Memory: mem}
				o.Memory = g
				require.Equal(t, want, onDevice[float32](t, c, o), "stage %d, clip %v", stage, clip)
				require.Equal(t, wide, onDevice[ccl.BFloat16](t, c, o), "stage %d, clip %v, bfloat16", stage, clip)
				o.Offload = true
				require.Equal(t, want, onDevice[float32](t, c, o), "stage %d, clip %v, masters on the host", stage, clip)
				require.Equal(t, wide, onDevice[ccl.BFloat16](t, c, o), "stage %d, clip %v, bfloat16, masters on the host", stage, clip)
				require.NotZero(t, g.fences)
				require.NoError(t, mem.Close())
				left, _, err := d.Memory()
				require.NoError(t, err)
				require.Equal(t, free, left, "Close has not freed it")
			}
		}
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}
