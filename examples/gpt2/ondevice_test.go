//go:build xla && nccl && cgo && linux

package main

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// On a GPU pieces are updated in place with optim's bits, and go on from moments that were saved.
func TestUpdateOnDevice(t *testing.T) {
	if !withFake(t) {
		return
	}
	d, err := cuda.At(0)
	require.NoError(t, err)
	m := &machine{device: d}
	m.stream, err = d.NewStream()
	require.NoError(t, err)
	k, err := newOnDevice(m)
	require.NoError(t, err)
	const n = 100
	w, err := k.Alloc(ccl.TypeFloat32, n)
	require.NoError(t, err)
	g, err := k.Alloc(ccl.TypeFloat32, n)
	require.NoError(t, err)
	want, grad, mom, sq := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	step := func(i int, decays bool) {
		h := optim.AdamW{LR: 3e-4, Beta1: beta1, Beta2: beta2}
		if decays {
			h.Decay = decay
		}
		for j := range grad {
			grad[j] = float32(i*(j%7)-j%5) / 3
		}
		require.NoError(t, k.Convert(g, ccl.BufOf(grad)))
		require.NoError(t, optim.Apply(h, i, want, grad, mom, sq))
		require.NoError(t, k.update(zero.Piece{Unit: 2, Param: 1}, w, g, i, 3e-4, decays))
		got := make([]float32, n)
		require.NoError(t, k.Get(unsafe.Slice((*byte)(unsafe.Pointer(&got[0])), 4*n), w))
		require.Equal(t, want, got)
	}
	step(1, false)
	step(2, true)
	for i := range mom {
		mom[i], sq[i] = float32(i), float32(i*i)
	}
	require.NoError(t, k.restore([2]int{2, 1}, [][]float32{mom, sq}))
	step(3, true)
	require.NoError(t, k.update(zero.Piece{Unit: 3}, w.From(0, 0), g.From(0, 0), 3, 3e-4, true), "a piece of nothing")
	require.NoError(t, k.Close())
	require.NoError(t, m.stream.Close())
}
