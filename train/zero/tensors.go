package zero

import (
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/internal/raw"
	"github.com/goccl/goccl/train/offload"
)

// State is a part of an optimizer's state that has an element for each parameter, such as the first moments of AdamW.
type State[M Float] struct {
	// Prefix comes before the names of the parameters, such as "adamw.m.".
	Prefix string
	// Of is by unit, each laid out as Shard of the unit is, with or without the padding. That of a
	// frozen unit may be nil or empty; what is given is saved, as of a unit that is frozen for a part
	// of the training.
	Of [][]M
	// Bufs is Of in the Memory of Options, which a device's needs. With neither it is what Options.Disk
	// has: the first State of that kind is state 0 there, the next one state 1.
	Bufs []ccl.Buf
}

// Tensors are the parameters of this rank's shards and the states, as package ckpt saves them and
// loads them into any number of ranks and any stage: ckpt.Save with them is a checkpoint, and after
// ckpt.Load into them call Loaded. They are the model's memory, and the states'.
//
// place names a parameter, and gives its shape, or what the parameter is of a larger tensor: Name,
// Shape, Offset and Size of a ckpt.Tensor. A parameter may be longer, and end in padding as tp's
// Layout makes it, if place says how many elements are none: by Hi, beside Offset and Size. Padding
// is not saved. If place is nil the name is UNIT.PARAM, and there is one dimension. A Memory of a
// device must be a ckpt.Copier, as a device.Memory is.
func (m *Model[P, M]) Tensors(place func(unit, param int) ckpt.Tensor,
	states ...State[M]) (list []ckpt.Tensor, err error) {
	if place == nil {
		place = func(unit, param int) ckpt.Tensor {
			return ckpt.Tensor{Name: fmt.Sprintf("%d.%d", unit, param), Shape: []int{m.units[unit].lens[param]}}
		}
	}
	return m.TensorsOf(func(unit, param int) []ckpt.Tensor { return []ckpt.Tensor{place(unit, param)} }, states...)
}

// TensorsOf is Tensors where a parameter is several tensors, or several boxes of one, as this
// rank's part of a fused matrix of queries, keys and values is in a tp.Layout with Parts. place
// lists them. Lo and Hi, beside Offset and Size, say which elements of the parameter a tensor is,
// as tp's Boxes do; without them it begins where the one before it ends.
func (m *Model[P, M]) TensorsOf(place func(unit, param int) []ckpt.Tensor,
	states ...State[M]) (list []ckpt.Tensor, err error) {
	switch {
	case m.closed:
		return nil, errClosed
	case place == nil:
		return nil, errors.New("zero: TensorsOf takes a place")
	}
	on, copies := m.mem.(ckpt.Copier)
	if m.host == nil && !copies {
		return nil, fmt.Errorf("zero: this model is in memory that a %T cannot copy to the host: copy ShardBuf, and save it by Pieces", m.mem)
	}
	for _, s := range states {
		if len(s.Of) == 0 && len(s.Bufs) == 0 && m.disk != nil { // which has it
			continue
		}
		if n := max(len(s.Of), len(s.Bufs)); n != len(m.units) || len(s.Of) > 0 && len(s.Bufs) > 0 {
			return nil, fmt.Errorf("zero: state %q has %d units, not %d", s.Prefix, n, len(m.units))
		}
	}
	for i := range m.units {
		prefixes, own := []string{""}, []offload.Array{{Of: m.disk.Master(i), Mem: m.ShardBuf(i)}}
		stored := 0
		for _, s := range states {
			var of offload.Array
			if len(s.Bufs) > 0 {
				of.Mem = s.Bufs[i]
			} else if len(s.Of) > 0 {
				of.Mem = ccl.BufOf(s.Of[i])
			} else {
				of.Of, stored = m.disk.State(i, stored), stored+1
			}
			if of.Len() > 0 || !m.units[i].frozen {
				prefixes, own = append(prefixes, s.Prefix), append(own, of)
			}
		}
		for _, p := range m.units[i].pieces {
			of, err := m.placed(p, place(i, p.Param))
			if err != nil {
				return nil, err
			}
			for _, t := range of {
				lo, hi := max(p.Lo, t.Lo), min(p.Hi, t.Hi)
				if lo >= hi {
					continue
				}
				at, end, name := p.At+lo-p.Lo, p.At+hi-p.Lo, t.Name
				t.Lo, t.Hi = lo-t.Lo, hi-t.Lo
				for k, of := range own {
					if of.Len() < end {
						return nil, fmt.Errorf("zero: state %q has %d elements of unit %d, and the shard has %d", prefixes[k], of.Len(),
							i, end)
					}
					t.Name, t.Data, t.On = prefixes[k]+name, plain(of.Part(at, end)), on
					list = append(list, t)
				}
			}
		}
	}
	return list, nil
}

// placed are the tensors of a parameter with the elements of it that each is. What is in none of
// them is padding, which only tensors may leave that say where they are.
func (m *Model[P, M]) placed(p Piece, of []ckpt.Tensor) ([]ckpt.Tensor, error) {
	n, at, padded := m.units[p.Unit].lens[p.Param], 0, false
	out := make([]ckpt.Tensor, 0, len(of))
	for _, t := range of {
		size, k := t.Shape, 1
		if t.Size != nil {
			size = t.Size
		}
		for _, v := range size {
			k *= v
		}
		explicit := t.Size != nil && t.Hi > 0
		if explicit {
			at = t.Lo
		}
		padded = padded || explicit || t.Size != nil && k == 0 // which is all padding here
		if k < 0 || t.Lo < 0 || t.Hi != 0 && t.Hi-t.Lo != k || at > n || k > n-at {
			return nil, fmt.Errorf("zero: parameter %d of unit %d has %d elements, not those of %q: %v", p.Param, p.Unit, n,
				t.Name, size)
		}
		t.Lo, t.Hi = at, at+k
		at += k
		out = append(out, t)
	}
	if !padded && at != n {
		last := ckpt.Tensor{}
		if len(of) > 0 {
			last = of[len(of)-1]
		}
		return nil, fmt.Errorf("zero: parameter %d of unit %d has %d elements, not those of %q: %v", p.Param, p.Unit, n,
			last.Name, last.Shape)
	}
	for i, t := range out {
		for _, other := range out[:i] {
			if max(t.Lo, other.Lo) < min(t.Hi, other.Hi) {
				return nil, fmt.Errorf("zero: parameter %d of unit %d: %q and %q have the same elements", p.Param, p.Unit,
					other.Name, t.Name)
			}
		}
	}
	return out, nil
}

// plain is a as a slice of one of the types of Float, a Buf on a device, or a Column on a disk.
func plain(a offload.Array) any {
	if a.Of.Is() {
		return a.Of
	}
	if s, ok := raw.Slice(a.Mem); ok {
		return s
	}
	return a.Mem
}
