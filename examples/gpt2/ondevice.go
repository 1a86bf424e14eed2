package main

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
)

// onDevice is zero's memory on a GPU, and AdamW's state in it: its kernels work in place, where XLA's programs would need a copy of
// each result. XLA's programs are over before a kernel reads what they have computed, and the stream is waited for before they read
// what kernels have.
type onDevice struct {
	*device.Memory
	m       *machine
	moments map[[2]int][2]ccl.Buf // of a piece, by unit and parameter
}

func newOnDevice(m *machine) (*onDevice, error) {
	mem, err := device.New(m.device, m.stream)
	if err != nil {
		return nil, err
	}
	return &onDevice{Memory: mem, m: m, moments: map[[2]int][2]ccl.Buf{}}, nil
}

// take copies gradients that XLA has computed to zero's memory, or adds them there, and waits: XLA's are freed then.
func take[P zero.Float](ctx context.Context, d *onDevice, dst ccl.Buf, g *xla.Buffer, add bool) error {
	from, err := xla.MemoryOf[P](g)
	if err != nil {
		return err
	}
	if add {
		err = d.Add(dst, ccl.BufOfMemory[P](from))
	} else {
		err = d.Convert(dst, ccl.BufOfMemory[P](from))
	}
	return errors.Join(err, d.m.settle(ctx))
}

// at are the moments of a piece of n elements.
func (d *onDevice) at(unit, param, n int) (mv [2]ccl.Buf, err error) {
	at := [2]int{unit, param}
	if mv = d.moments[at]; mv[0].Len() == n {
		return mv, nil
	}
	for i := range mv {
		if mv[i], err = d.Alloc(ccl.TypeFloat32, n); err != nil {
			return mv, err
		}
	}
	d.moments[at] = mv
	return mv, nil
}

// update is AdamW on a piece of a shard.
func (d *onDevice) update(p zero.Piece, w, g ccl.Buf, step int, lr float64, decays bool) error {
	if w.Len() == 0 {
		return nil
	}
	mv, err := d.at(p.Unit, p.Param, w.Len())
	if err != nil {
		return err
	}
	return d.AdamW(adamOf(lr, decays), step, w, g, mv[0], mv[1])
}

// restore sets the moments of a piece.
func (d *onDevice) restore(at [2]int, x [][]float32) error {
	mv, err := d.at(at[0], at[1], len(x[0]))
	for i := range mv {
		if err == nil {
			err = d.Convert(mv[i], ccl.BufOf(x[i]))
		}
	}
	return err
}
