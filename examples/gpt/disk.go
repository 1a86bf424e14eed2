package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"unsafe"

	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/zero"
)

// holding is where a rank's part of the state is, and in which type.
type holding struct {
	bf16 bool
	dir  string // of the disk that has it; "": it is in memory
}

func (h *holding) String() string {
	if h == nil || h.dir == "" {
		return ""
	}
	return "disk=" + h.dir
}

// Set reads -offload.
func (h *holding) Set(s string) error {
	to, dir, named := strings.Cut(s, "=")
	if to != "disk" || named && dir == "" {
		return errors.New("give disk, or disk=DIRECTORY")
	}
	if h.dir = "."; named {
		h.dir = dir
	}
	return nil
}

// moments are the state of AdamW: laid out as the shards, or on a disk.
type moments struct {
	m, v [][]float32
	disk *offload.Disk // nil: in memory
}

// of is what belongs to the n parameters that are updated.
func (a *moments) of(p zero.Piece, n int) (m, v []float32) {
	if a.disk != nil {
		return offload.State[float32](a.disk, 0), offload.State[float32](a.disk, 1)
	}
	return a.m[p.Unit][p.At : p.At+n], a.v[p.Unit][p.At : p.At+n]
}

// greet says what the disk has.
func (a *moments) greet(out io.Writer, dir string) {
	if a.disk == nil {
		return
	}
	s, past := a.disk.Stats(), "past"
	if !s.Direct {
		past = "through"
	}
	fmt.Fprintf(out, "disk of rank 0: %.1f MB in %s, %s the page cache\n", float64(s.Size)/1e6, dir, past)
}

// say says what the disk has done in so many steps.
func (a *moments) say(out io.Writer, steps int) {
	if a.disk == nil {
		return
	}
	s, n := a.disk.Stats(), 1e6*float64(max(steps, 1))
	fmt.Fprintf(out, "disk of rank 0: %.1f MB read and %.1f written a step, at %.0f MB/s; waited for %.1f s of %.1f\n",
		float64(s.Read)/n, float64(s.Written)/n, float64(s.Read+s.Written)/1e6/max(s.Busy.Seconds(), 1e-9),
		s.Waited.Seconds(), s.Busy.Seconds())
}

// tensors are those of a model and its AdamW, where the disk has a part of them. place names each.
func (a *moments) tensors(model store, place func(unit, param int) (ckpt.Tensor, error)) ([]ckpt.Tensor, error) {
	m, ok := model.(interface {
		Tensors(func(unit, param int) ckpt.Tensor, ...zero.State[float32]) ([]ckpt.Tensor, error)
	})
	if !ok {
		return nil, errors.New("this model is not one that a disk may have")
	}
	var failed error
	list, err := m.Tensors(func(unit, param int) ckpt.Tensor {
		t, err := place(unit, param)
		if err != nil {
			failed = err
		}
		return t
	}, zero.State[float32]{Prefix: "adamw.m."}, zero.State[float32]{Prefix: "adamw.v."})
	if failed != nil {
		return nil, failed
	}
	return list, err
}

// eachPart calls f with all elements of data, those on a disk a few at a time.
func eachPart(data any, f func(part []float32)) error {
	on, is := data.(ckpt.Stored)
	if !is {
		f(data.([]float32))
		return nil
	}
	part := make([]float32, min(1<<18, on.Len()))
	for at := 0; at < on.Len(); at += len(part) {
		part = part[:min(len(part), on.Len()-at)]
		b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(part))), 4*len(part))
		if _, err := on.ReadAt(b, int64(4*at)); err != nil {
			return err
		}
		f(part)
	}
	return nil
}
