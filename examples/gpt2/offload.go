package main

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// moments are AdamW's first and second moments of pieces, by unit and parameter, in memory of the host.
type moments map[[2]int][2][]float32

// of are those of a piece of n elements.
func (m moments) of(unit, param, n int) [2][]float32 {
	at := [2]int{unit, param}
	if len(m[at][0]) != n {
		m[at] = [2][]float32{make([]float32, n), make([]float32, n)}
	}
	return m[at]
}

// update is AdamW on a piece of a shard, whose master copy is on the host, too.
func (m moments) update(p zero.Piece, w, g []float32, step int, lr float64, decays bool) error {
	mv := m.of(p.Unit, p.Param, len(w))
	return optim.Apply(adamOf(lr, decays), step, w, g, mv[0], mv[1])
}

// adamOf is AdamW as package optim has it.
func adamOf(lr float64, decays bool) optim.AdamW {
	h := optim.AdamW{LR: lr, Beta1: beta1, Beta2: beta2, Eps: epsilon}
	if decays {
		h.Decay = decay
	}
	return h
}

// Get and Put copy between memories of the host: on a GPU the memory is a device.Memory.

func (k *memory) Get(dst []byte, src ccl.Buf) error {
	return k.bytes(src, dst, func(b []byte) { copy(dst, b) })
}

func (k *memory) Put(dst ccl.Buf, src []byte) error {
	return k.bytes(dst, src, func(b []byte) { copy(b, src) })
}

func (k *memory) bytes(b ccl.Buf, other []byte, do func(b []byte)) error {
	if err := k.m.settle(k.ctx); err != nil {
		return err
	}
	at := unsafe.Pointer(nil)
	if s, ok := ccl.SliceOf[float32](b); ok {
		at = unsafe.Pointer(unsafe.SliceData(s))
	} else if s, ok := ccl.SliceOf[ccl.BFloat16](b); ok {
		at = unsafe.Pointer(unsafe.SliceData(s))
	} else {
		return errors.New("this is no memory of the host")
	}
	n := b.Len() * b.Type().Size()
	if n != len(other) {
		return fmt.Errorf("a copy of %d bytes to %d", n, len(other))
	}
	do(unsafe.Slice((*byte)(at), n))
	return nil
}
