//go:build linux && cgo && nccl

package ckpt_test

import (
	"errors"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/device"
)

// refusing is a Copier that does not.
type refusing struct{ ckpt.Copier }

func (refusing) Get([]byte, ccl.Buf) error { return errors.New("it cannot be read") }
func (refusing) Put(ccl.Buf, []byte) error { return errors.New("it cannot be written") }

// Tensors in memory of a device are saved, in the background as well, and loaded into memory of a device or the host.
func TestDeviceTensors(t *testing.T) {
	gputest.Fake(t, "one device does not do for two ranks")
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		d, err := cuda.Local(c.Place().Local, c.Place().Locals)
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		defer s.Close()
		m, err := device.New(d, s)
		require.NoError(t, err)
		defer m.Close()

		const n = 3 << 20 // of which a rank has half: more than a window
		lo, hi := c.Rank()*n/2, (c.Rank()+1)*n/2
		fill := func(b ccl.Buf, by float32) {
			x := make([]float32, b.Len())
			for i := range x {
				x[i] = by * float32((lo+i)%1000)
			}
			require.NoError(t, m.Put(b, unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x))))
		}
		b, err := m.Alloc(ccl.TypeFloat32, hi-lo)
		require.NoError(t, err)
		h := []ccl.BFloat16{ccl.ToBFloat16(float32(c.Rank()))}
		tensors := func(b ccl.Buf, on ckpt.Copier) []ckpt.Tensor {
			return []ckpt.Tensor{{Name: "x", Shape: []int{n}, Lo: lo, Hi: hi, Data: b, On: on},
				{Name: "h", Shape: []int{2}, Lo: c.Rank(), Hi: c.Rank() + 1, Data: ccl.BufOf(h)}}
		}
		check := func(dir string, by float32) {
			got, halves := make([]float32, n), make([]ccl.BFloat16, 2)
			require.NoError(t, ckpt.Load(ctx, c, dir, nil, []ckpt.Tensor{{Name: "x", Shape: []int{n}, Data: got}, {Name: "h", Shape: []int{2}, Data: halves}}))
			for i, v := range got {
				if v != by*float32(i%1000) {
					require.Equal(t, by*float32(i%1000), v, "%d", i)
				}
			}
			require.Equal(t, ccl.ToBFloat16(1), halves[1])
		}
		fill(b, 1)
		require.NoError(t, ckpt.Save(ctx, c, filepath.Join(dir, "saved"), nil, tensors(b, m)))
		check(filepath.Join(dir, "saved"), 1)

		saver, err := ckpt.NewSaver(ctx, c)
		require.NoError(t, err)
		for i := range 3 {
			fill(b, float32(i))
			require.NoError(t, saver.Save(ctx, ckpt.Step(dir, i), nil, tensors(b, m)))
			fill(b, -1) // training goes on
		}
		require.NoError(t, saver.Wait(ctx))
		for i := range 3 {
			check(ckpt.Step(dir, i), float32(i))
		}

		// Into a device, in another layout.
		whole, err := m.Alloc(ccl.TypeFloat32, n)
		require.NoError(t, err)
		require.NoError(t, ckpt.Load(ctx, c, ckpt.Step(dir, 2), nil, []ckpt.Tensor{{Name: "x", Shape: []int{n}, Data: whole, On: m}}))
		got := make([]float32, n)
		require.NoError(t, m.Get(unsafe.Slice((*byte)(unsafe.Pointer(&got[0])), 4*n), whole))
		require.Equal(t, float32(2*(n-1)%2000), got[n-1])

		// What one rank cannot copy is an error on all.
		on := ckpt.Copier(m)
		if c.Rank() == 1 {
			on = refusing{}
		}
		require.ErrorContains(t, ckpt.Save(ctx, c, filepath.Join(dir, "no"), nil, tensors(b, on)), `tensor "x": it cannot be read`)
		require.NoError(t, saver.Save(ctx, filepath.Join(dir, "no"), nil, tensors(b, on)))
		require.ErrorContains(t, saver.Close(ctx), `tensor "x": it cannot be read`)
		require.ErrorContains(t, ckpt.Load(ctx, c, ckpt.Step(dir, 1), nil, tensors(b, on)), `tensor "x": it cannot be written`)
		require.ErrorContains(t, ckpt.Save(ctx, c, filepath.Join(dir, "no"), nil, tensors(b, nil)), `tensor "x": Data is memory of a device, which On must copy, as a device.Memory does`)
		require.NoFileExists(t, filepath.Join(dir, "no"))
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}
