package rounds

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// sums reduces what the ranks have posted, or what a rank reads from the others. Sums of more than
// two 16-bit floats are made of all operands at once, so that they are rounded once.
type sums struct {
	seat
	staging *staging
	offers  *offering
	srcs    []unsafe.Pointer // where the operands are, while they are added
	from    []reach.Source   // where they lie, by rank
}

// foldAll reduces n bytes at offset from of every rank's slot, in which inSlot bytes lie, into dst, in rank
// order; own, where not nil, stands for this rank's slot. The sums of more than two 16-bit floats are rounded once.
func (c *sums) foldAll(k *call.Call, dst unsafe.Pointer, round uint32, inSlot int, from func(r int) int,
	own unsafe.Pointer, n int, stream bool) *call.Fault {
	operand := func(r, i int) (unsafe.Pointer, *call.Fault) {
		if r == c.me && own != nil {
			return unsafe.Add(own, i), nil
		}
		p, f := c.staging.slotOf(r, round, inSlot)
		if f != nil {
			return nil, f
		}
		return unsafe.Add(p, from(r)+i), nil
	}
	fold := k.Fold
	if c.n == 2 && stream {
		fold = k.Stream
	}
	step := tuning.FoldPiece
	var theirs unsafe.Pointer // with two ranks, the other's operand: the lines of its next step are claimed, see receive
	if c.n == 2 {
		step = max(n, 1)
		if c.staging.returns(inSlot) {
			var f *call.Fault
			if theirs, f = operand(1-c.me, 0); f != nil {
				return f
			}
			step = tuning.ClaimPiece
			ordered.Claim(theirs, min(step, n))
		}
	}
	for i := 0; i < n; i += step {
		if next := i + step; theirs != nil && next < n {
			ordered.Claim(unsafe.Add(theirs, next), min(step, n-next))
		}
		m := min(step, n-i)
		to := unsafe.Add(dst, i)
		if k.SumsAll(c.n) {
			srcs := c.operands(c.n)
			for r := range srcs {
				var f *call.Fault
				if srcs[r], f = operand(r, i); f != nil {
					return f
				}
			}
			k.SumAll(to, srcs, m)
			continue
		}
		a, f := operand(0, i)
		if f != nil {
			return f
		}
		for r := 1; r < c.n; r++ {
			b, f := operand(r, i)
			if f != nil {
				return f
			}
			fold(to, a, b, m/k.Elem)
			a = to
		}
		if k.Scale != nil {
			k.Scale(to, m/k.Elem, c.n)
		}
	}
	return nil
}

func zero(int) int { return 0 }

// operands is room for the places of n operands.
func (c *sums) operands(n int) []unsafe.Pointer {
	if len(c.srcs) != n {
		c.srcs = make([]unsafe.Pointer, n)
	}
	return c.srcs
}

// reduceByRead reduces the bytes of all ranks' operands from offset off on into dst.
func (c *sums) reduceByRead(ctx context.Context, k *call.Call, dst []byte, off int) *call.Fault {
	if len(dst) == 0 {
		return nil
	}
	from, f := c.operandsAt(k, off)
	switch {
	case f != nil:
	case k.SumsAll(c.n):
		f = c.sumByRead(ctx, k, dst, from)
	default:
		f = c.foldByRead(ctx, k, dst, from)
	}
	clear(from) // see Read
	c.mem.Touched()
	return f
}

// foldByRead is reduceByRead of what is reduced two operands at a time.
func (c *sums) foldByRead(ctx context.Context, k *call.Call, dst []byte, from []reach.Source) *call.Fault {
	one := unsafe.Pointer(&c.mem.Scratch[0]) // which the first of two operands is read to
	for i := 0; i < len(dst); i += tuning.ReadPiece {
		m := min(tuning.ReadPiece, len(dst)-i)
		a := from[0].At(i)
		for r := 1; r < c.n; r++ {
			to, scale := one, false // not dst, where this rank's own operand may still be needed
			if r == c.n-1 {
				to, scale = unsafe.Pointer(&dst[i]), k.Scale != nil
			}
			two := [2]reach.Source{a, from[r].At(i)}
			f := c.mem.Read(ctx, two[:], m, c.mem.Scratch, tuning.ReadPiece, func(at []unsafe.Pointer) {
				foldPieceOf(k, to, at[0], at[1], m)
				if scale {
					k.Scale(to, m/k.Elem, c.n)
				}
			})
			if f != nil {
				return f
			}
			a = reach.Own(one)
		}
	}
	return nil
}

// operandsAt says where the operands of all ranks are, from offset off on.
func (c *sums) operandsAt(k *call.Call, off int) ([]reach.Source, *call.Fault) {
	if len(c.from) != c.n {
		c.from = make([]reach.Source, c.n)
	}
	for r := range c.from {
		if r == c.me {
			c.from[r] = reach.Own(unsafe.Pointer(&k.Src[off]))
			continue
		}
		s, f := c.mem.Find(r, &c.offers.posted[r].src)
		if f != nil {
			return c.from, f
		}
		c.from[r] = s.At(off)
	}
	return c.from, nil
}

//go:noinline
func foldPieceOf(k *call.Call, to, a, b unsafe.Pointer, n int) { k.Fold(to, a, b, n/k.Elem) }

// sumByRead is reduceByRead of such a sum: it reads a piece of every operand before it adds them.
func (c *sums) sumByRead(ctx context.Context, k *call.Call, dst []byte, from []reach.Source) *call.Fault {
	length := max(len(c.mem.Scratch)/c.n&^63, 64)
	if need := length * c.n; need > len(c.mem.Scratch) {
		c.mem.Scratch = make([]byte, need)
	}
	for i := 0; i < len(dst); i += length {
		for r := range from {
			if i > 0 {
				from[r] = from[r].At(length)
			}
		}
		m := min(length, len(dst)-i)
		f := c.mem.Read(ctx, from, m, c.mem.Scratch, length,
			func(at []unsafe.Pointer) { k.SumAll(unsafe.Pointer(&dst[i]), at, m) })
		if f != nil {
			return f
		}
	}
	return nil
}
