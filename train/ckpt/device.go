package ckpt

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// Copier copies between the host and memory that the host cannot touch, a device's. A device.Memory is one.
type Copier interface {
	Get(dst []byte, src ccl.Buf) error
	Put(dst ccl.Buf, src []byte) error
}

// broken is the Data of a tensor that could not be copied, which describe tells all ranks.
type broken struct{ error }

// hosted is ts with slices in the place of Bufs: of the host's memory the slice itself, of a
// device's one of their own, which is that of old where it fits. get copies what is there.
func hosted(ts, old []Tensor, get bool) []Tensor {
	out := ts
	for i := range ts {
		b, is := ts[i].Data.(ccl.Buf)
		if !is {
			continue
		}
		if len(out) > 0 && &out[0] == &ts[0] {
			out = slices.Clone(ts)
		}
		var before any
		if i < len(old) {
			before = old[i].Data
		}
		out[i].Data = ts[i].host(b, before, get)
	}
	return out
}

// host is the Data of t, whose Data is b, on the host.
func (t *Tensor) host(b ccl.Buf, old any, get bool) any {
	if _, within := b.Join(b.From(0, 0)); !within {
		return broken{fmt.Errorf("tensor %q: Data is no Buf, or was cut out of one beyond its end", t.Name)}
	}
	if s, ok := raw.Slice(b); ok {
		return s
	}
	s := raw.Make(b.Type(), 0)
	if s == nil {
		return broken{fmt.Errorf("tensor %q: Data is a Buf of no type", t.Name)}
	}
	if t.On == nil {
		return broken{fmt.Errorf("tensor %q: Data is memory of a device, which On must copy, as a device.Memory does",
			t.Name)}
	}
	if !fits(old, s, b.Len()) {
		old = raw.Make(b.Type(), b.Len())
	}
	s = old
	if get {
		if err := t.On.Get(bytesOf(s), b); err != nil {
			return broken{fmt.Errorf("tensor %q: %w", t.Name, err)}
		}
	}
	return s
}

// putBack copies what was loaded to the devices.
func putBack(ts, loaded []Tensor) error {
	for i := range ts {
		b, is := ts[i].Data.(ccl.Buf)
		if !is {
			continue
		}
		if _, onHost := raw.Slice(b); onHost {
			continue
		}
		if err := ts[i].On.Put(b, bytesOf(loaded[i].Data)); err != nil {
			return fmt.Errorf("tensor %q: %w", ts[i].Name, err)
		}
	}
	return nil
}
