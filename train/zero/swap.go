package zero

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
	"github.com/goccl/goccl/train/internal/same"
)

// Swap exchanges the parameters of this rank's shards with of, a slice for each unit that is laid
// out as Shard is, and makes the parameters what the shards then say: as to evaluate with a moving
// average of them. A second Swap exchanges them back. A unit whose slice is nil on all ranks stays,
// and so does a frozen parameter. No two slices overlap. It is collective, and for host memory, between two steps.
func (m *Model[P, M]) Swap(ctx context.Context, of [][]M) error {
	if m.closed {
		return errClosed
	}
	var bad error
	items, used := make([]string, 0, len(of)), make([]ccl.Buf, 0, len(of))
	switch {
	case m.host == nil:
		bad = errors.New("Swap is for host memory, and this model is in that of a device")
	case m.disk != nil:
		bad = errors.New("Swap is for parameters in memory, and this model has a Disk")
	case len(of) != len(m.units):
		bad = fmt.Errorf("Swap of %d units with the %d of the model", len(of), len(m.units))
	default:
		for i, x := range of {
			items = append(items, fmt.Sprintf("unit %d to swap: %v", i, x != nil))
			u := &m.units[i]
			used = append(used, ccl.BufOf(x[:min(len(x), u.length())]))
			switch n := u.length(); {
			case x != nil && u.frozen:
				bad = fmt.Errorf("Swap of unit %d, which is frozen", i)
			case x != nil && len(x) < n:
				bad = fmt.Errorf("Swap of unit %d, whose shard has %d elements, with %d", i, n, len(x))
			case u.uses > 0 || u.micro > 0:
				bad = fmt.Errorf("Swap within a step: unit %d is in use, or was reduced", i)
			}
		}
		if i, j, overlap := new(raw.Places).Overlap(used); overlap && bad == nil {
			bad = fmt.Errorf("Swap of units %d and %d, whose slices overlap", i, j)
		}
	}
	if err := same.Args(ctx, m.c, "zero", bad, items...); err != nil {
		return err
	}
	for i, x := range of {
		w, u := m.Shard(i), &m.units[i]
		for _, p := range u.pieces {
			if x == nil || u.still[p.Param] { // a frozen one has no other
				continue
			}
			for k := p.At; k < p.At+p.Hi-p.Lo; k++ {
				w[k], x[k] = x[k], w[k]
			}
		}
	}
	return m.Loaded(ctx)
}

// length is how many elements of the unit's shard are no padding at its end.
func (u *unit[P]) length() int {
	if len(u.pieces) == 0 {
		return 0
	}
	last := u.pieces[len(u.pieces)-1]
	return last.At + last.Hi - last.Lo
}
