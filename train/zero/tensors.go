package zero

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
)

// State is a part of an optimizer's state that has an element for each parameter, such as the first moments of AdamW.
type State[M Float] struct {
	// Prefix comes before the names of the parameters, such as "adamw.m.".
	Prefix string
	// Of is by unit, each laid out as Shard of the unit is, with or without the padding. That of a frozen unit may be nil.
	Of [][]M
	// Bufs is Of in the Memory of Options, which a device's needs.
	Bufs []ccl.Buf
}

// Tensors are the parameters of this rank's shards and the states, as package ckpt saves them and loads them into any number of
// ranks and any stage: ckpt.Save with them is a checkpoint, and after ckpt.Load into them call Loaded. They are the model's memory,
// and the states'.
//
// place names a parameter, and gives its shape, or what the parameter is of a larger tensor: Name, Shape, Offset and Size of a
// ckpt.Tensor. A parameter may be longer, and end in padding as tp's Layout makes it, if place says how many elements are
// none: by Hi, beside Offset and Size. Padding is not saved. If place is nil the name is UNIT.PARAM, and there is one
// dimension. A Memory of a device must be a ckpt.Copier, as a device.Memory is.
func (m *Model[P, M]) Tensors(place func(unit, param int) ckpt.Tensor, states ...State[M]) (list []ckpt.Tensor, err error) {
	switch {
	case m.closed:
		return nil, errClosed
	}
	on, copies := m.mem.(ckpt.Copier)
	if m.host == nil && !copies {
		return nil, fmt.Errorf("zero: this model is in memory that a %T cannot copy to the host: copy ShardBuf, and save it by Pieces", m.mem)
	}
	for _, s := range states {
		if n := max(len(s.Of), len(s.Bufs)); n != len(m.units) || len(s.Of) > 0 && len(s.Bufs) > 0 {
			return nil, fmt.Errorf("zero: state %q has %d units, not %d", s.Prefix, n, len(m.units))
		}
	}
	for i := range m.units {
		prefixes, own := []string{""}, []ccl.Buf{m.ShardBuf(i)}
		for _, s := range states {
			switch {
			case m.units[i].frozen: // which has none
			case len(s.Bufs) > 0:
				prefixes, own = append(prefixes, s.Prefix), append(own, s.Bufs[i])
			default:
				prefixes, own = append(prefixes, s.Prefix), append(own, ccl.Host(s.Of[i]))
			}
		}
		for _, p := range m.units[i].pieces {
			t := ckpt.Tensor{Name: fmt.Sprintf("%d.%d", i, p.Param), Shape: []int{m.units[i].lens[p.Param]}}
			if place != nil {
				t = place(i, p.Param)
			}
			size := t.Shape
			if t.Size != nil {
				size = t.Size
			}
			n := 1
			for _, v := range size {
				n *= v
			}
			if padded := t.Size != nil && t.Lo == 0 && t.Hi == n; n > m.units[i].lens[p.Param] || n < m.units[i].lens[p.Param] && !padded {
				return nil, fmt.Errorf("zero: parameter %d of unit %d has %d elements, not those of %q: %v", p.Param, i, m.units[i].lens[p.Param], t.Name, size)
			}
			name := t.Name
			t.Lo, t.Hi = min(p.Lo, n), min(p.Hi, n)
			if t.Lo == t.Hi && p.Lo < p.Hi {
				continue // all of it is padding
			}
			for k, of := range own {
				end := p.At + t.Hi - t.Lo
				if of.Len() < end {
					return nil, fmt.Errorf("zero: state %q has %d elements of unit %d, and the shard has %d", prefixes[k], of.Len(), i, end)
				}
				t.Name, t.Data, t.On = prefixes[k]+name, plain(of.From(p.At, end)), on
				list = append(list, t)
			}
		}
	}
	return list, nil
}

// plain is b as a slice of one of the types of Float, or b itself on a device.
func plain(b ccl.Buf) any {
	if s, ok := ccl.Slice[float32](b); ok {
		return s
	}
	if s, ok := ccl.Slice[float64](b); ok {
		return s
	}
	if s, ok := ccl.Slice[ccl.BFloat16](b); ok {
		return s
	}
	if s, ok := ccl.Slice[ccl.Float16](b); ok {
		return s
	}
	return b
}
