package cpu

import "unsafe"

// Sums of more than two 16-bit floats are made of all operands at once, so that they are rounded once.

// sumsAll reports whether k is such a sum.
func (k *Call) sumsAll(n int) bool { return n > 2 && k.All != nil }

// sumAll adds all of srcs, each of n bytes, and forgets where they were.
func (k *Call) sumAll(to unsafe.Pointer, srcs []unsafe.Pointer, n int) {
	k.All(to, srcs, n/k.Elem)
	clear(srcs)
	if k.Scale != nil {
		k.Scale(to, n/k.Elem, len(srcs))
	}
}

// operands is room for the places of n operands.
func (c *Team) operands(n int) []unsafe.Pointer {
	if len(c.srcs) != n {
		c.srcs = make([]unsafe.Pointer, n)
	}
	return c.srcs
}

// sumByRead is reduceByRead of such a sum: it reads a piece of every operand before it adds them.
func sumByRead(c *Team, k *Call, dst []byte, off int, operand func(r, at, m int, buf []byte) (unsafe.Pointer, *Fault)) *Fault {
	length := max(len(c.Reach.scratch)/c.n&^63, 64)
	if need := length * c.n; need > len(c.Reach.scratch) {
		c.Reach.scratch = make([]byte, need)
	}
	for i := 0; i < len(dst); i += length {
		m := min(length, len(dst)-i)
		srcs := c.operands(c.n)
		for r := range srcs {
			var f *Fault
			if srcs[r], f = operand(r, off+i, m, c.Reach.scratch[r*length:][:length]); f != nil {
				return f
			}
		}
		k.sumAll(unsafe.Pointer(&dst[i]), srcs, m)
		if f := c.interruptedNow(); f != nil {
			return f
		}
	}
	c.touched()
	return nil
}
