//go:build linux && cgo && nccl

package zero_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/internal/vec"
	"github.com/goccl/goccl/train/zero"
)

// gpu is a zero.Memory of one device. Its arithmetic is done on copies on the host, once the stream has done what was
// issued before: there are no kernels here.
type gpu struct {
	d      cuda.Device
	s      *cuda.Stream
	mu     sync.Mutex
	blocks []block
	fences int
}

// block is memory of a device of any type.
type block interface {
	Ptr() (uintptr, bool)
	buf() ccl.Buf
	get(i, n int) (ccl.Buf, error) // a copy of its elements from i on
	put(i int, b ccl.Buf) error
	Free() error
}

type mem[T zero.Float] struct{ *cuda.Mem[T] }

func (m mem[T]) buf() ccl.Buf { return ccl.Device[T](m.Mem) }

func (m mem[T]) get(i, n int) (ccl.Buf, error) {
	s := make([]T, n)
	part, err := m.Part(i, i+n)
	if err == nil {
		err = part.Get(s)
	}
	return ccl.Host(s), err
}

func (m mem[T]) put(i int, b ccl.Buf) error {
	s, _ := ccl.Slice[T](b)
	part, err := m.Part(i, i+len(s))
	if err != nil {
		return err
	}
	return part.Put(s)
}

func alloc[T zero.Float](g *gpu, n int) (ccl.Buf, error) {
	m, err := cuda.Alloc[T](g.d, n)
	if err != nil {
		return ccl.Buf{}, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.blocks = append(g.blocks, mem[T]{m})
	return g.blocks[len(g.blocks)-1].buf(), m.Set(0)
}

func (g *gpu) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	switch t {
	case ccl.TypeFloat32:
		return alloc[float32](g, n)
	case ccl.TypeBFloat16:
		return alloc[ccl.BFloat16](g, n)
	}
	return ccl.Buf{}, fmt.Errorf("no memory of %v", t)
}

// find is the block that b lies in, and where, once the stream has come so far.
func (g *gpu) find(b ccl.Buf) (block, int, error) {
	if err := g.s.Synchronize(); err != nil {
		return nil, 0, err
	}
	at, ok := b.Addr()
	if !ok {
		return nil, 0, errors.New("this is no memory of the device")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.blocks {
		if from, _ := x.Ptr(); from <= at && at+uintptr(b.Len()*b.Type().Size()) <= from+uintptr(x.buf().Len()*x.buf().Type().Size()) && x.buf().Type() == b.Type() {
			return x, int(at-from) / b.Type().Size(), nil
		}
	}
	return nil, 0, errors.New("this is none of my memory")
}

// read is a copy of b on the host, if b is not there.
func (g *gpu) read(b ccl.Buf) (ccl.Buf, error) {
	if _, ok := b.Addr(); !ok {
		return b, nil
	}
	x, at, err := g.find(b)
	if err != nil || b.Len() == 0 {
		return b, err
	}
	return x.get(at, b.Len())
}

// change reads dst, changes the copy, and writes it back.
func (g *gpu) change(dst ccl.Buf, f func(ccl.Buf)) error {
	if dst.Len() == 0 {
		return nil
	}
	x, at, err := g.find(dst)
	if err != nil {
		return err
	}
	h, err := x.get(at, dst.Len())
	if err != nil {
		return err
	}
	f(h)
	return x.put(at, h)
}

func (g *gpu) Stream() ccl.Stream { return g.s }

func (g *gpu) Fence() error { g.fences++; return nil }

func (g *gpu) Free(b ccl.Buf) error {
	x, _, err := g.find(b)
	if err != nil {
		return err
	}
	return x.Free()
}

func (g *gpu) Zero(dst ccl.Buf) error { return g.change(dst, vec.Zero) }

func (g *gpu) Add(dst, src ccl.Buf) error {
	h, err := g.read(src)
	if err != nil {
		return err
	}
	return g.change(dst, func(d ccl.Buf) { vec.Add(d, h) })
}

func (g *gpu) Scale(dst ccl.Buf, by float64) error {
	return g.change(dst, func(d ccl.Buf) { vec.Scale(d, by) })
}

func (g *gpu) Divide(dst ccl.Buf, n int) error {
	return g.change(dst, func(d ccl.Buf) { vec.Divide(d, n) })
}

func (g *gpu) Convert(dst, src ccl.Buf) error {
	h, err := g.read(src)
	if err != nil {
		return err
	}
	return g.change(dst, func(d ccl.Buf) { vec.Convert(d, h) })
}

func (g *gpu) SumSquares(src ccl.Buf) (float64, error) {
	h, err := g.read(src)
	return vec.SumSquares(h), err
}

// onDevice trains a little with exact arithmetic, in the memory o has, and returns the masters of all ranks.
func onDevice[P zero.Float](t testing.TB, c *ccl.Comm, o zero.Options) (masters []float32) {
	ctx := t.Context()
	units := [][]int{{5, 40}, {33}, {100}}
	m, err := zero.New[P, float32](ctx, c, units, &o)
	require.NoError(t, err)
	host := zero.Memory(nil)
	if host = o.Memory; host == nil {
		host = copier{}
	}
	for i, lens := range units {
		var full [][]float32
		for _, n := range lens {
			full = append(full, make([]float32, n))
			for k := range n {
				full[len(full)-1][k] = float32(k % 9)
			}
		}
		require.NoError(t, m.Load(ctx, i, full, c.Size()-1))
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
					vec.Convert(ccl.Host(more), ccl.Host(x))
					require.NoError(t, host.Add(g[j], ccl.Host(more)))
				}
				m.Release(i)
				require.NoError(t, m.Reduce(i))
			}
		}
		require.NoError(t, m.StepBufs(ctx, func(_ zero.Piece, w, g ccl.Buf) error {
			tmp := make([]float32, g.Len())
			if err := copyOut(o.Memory, tmp, g); err != nil {
				return err
			}
			for k := range tmp {
				tmp[k] *= -.25
			}
			return host.Add(w, ccl.Host(tmp))
		}))
	}
	for i := range units {
		mine := make([]float32, m.ShardBuf(i).Len())
		require.NoError(t, copyOut(o.Memory, mine, m.ShardBuf(i)))
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
			_, touchable := ccl.Slice[P](b)
			require.Equal(t, o.Memory == nil, touchable)
			got, want := make([]P, b.Len()), make([]P, b.Len())
			require.NoError(t, copyOut(o.Memory, got, b))
			vec.Convert(ccl.Host(want), ccl.Host(mine[at:at+b.Len()]))
			require.Equal(t, want, got, "unit %d", i)
			at += b.Len()
		}
		m.Release(i)
	}
	require.NoError(t, m.Close())
	return masters
}

// copier adds on the host.
type copier struct{ zero.Memory }

func (copier) Add(dst, src ccl.Buf) error { vec.Add(dst, src); return nil }

func copyOut[T zero.Float](m zero.Memory, dst []T, src ccl.Buf) error {
	if g, ok := m.(*gpu); ok {
		h, err := g.read(src)
		vec.Convert(ccl.Host(dst), h)
		return err
	}
	vec.Convert(ccl.Host(dst), src)
	return nil
}

// On a device, whose memory faults where host code touches it, all stages do what they do on the host.
func TestDeviceMemory(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		d, err := cuda.Local(c.Place().Local, c.Place().Locals)
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		defer s.Close()
		for stage := range 4 {
			for _, clip := range []float64{0, 4} {
				o := zero.Options{Stage: stage, Micro: 2, Clip: clip}
				want, wide := onDevice[float32](t, c, o), onDevice[ccl.BFloat16](t, c, o)
				g := &gpu{d: d, s: s}
				o.Memory = g
				require.Equal(t, want, onDevice[float32](t, c, o), "stage %d, clip %v", stage, clip)
				require.Equal(t, wide, onDevice[ccl.BFloat16](t, c, o), "stage %d, clip %v, bfloat16", stage, clip)
				require.NotZero(t, g.fences)
				for _, b := range g.blocks {
					_, live := b.Ptr()
					require.False(t, live, "Close has not freed it")
				}
			}
		}
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}
