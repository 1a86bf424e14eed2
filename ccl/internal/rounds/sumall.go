package rounds

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Sums of more than two 16-bit floats are made of all operands at once, so that they are rounded once.

// operands is room for the places of n operands.
func (c *Team) operands(n int) []unsafe.Pointer {
	if len(c.srcs) != n {
		c.srcs = make([]unsafe.Pointer, n)
	}
	return c.srcs
}

// sumByRead is reduceByRead of such a sum: it reads a piece of every operand before it adds them.
func sumByRead(c *Team, k *call.Call, dst []byte, off int, operand func(r, at, m int, buf []byte) (unsafe.Pointer, *call.Fault)) *call.Fault {
	length := max(len(c.Reach.Scratch)/c.N&^63, 64)
	if need := length * c.N; need > len(c.Reach.Scratch) {
		c.Reach.Scratch = make([]byte, need)
	}
	for i := 0; i < len(dst); i += length {
		m := min(length, len(dst)-i)
		srcs := c.operands(c.N)
		for r := range srcs {
			var f *call.Fault
			if srcs[r], f = operand(r, off+i, m, c.Reach.Scratch[r*length:][:length]); f != nil {
				return f
			}
		}
		k.SumAll(unsafe.Pointer(&dst[i]), srcs, m)
		if f := c.InterruptedNow(); f != nil {
			return f
		}
	}
	c.Touched()
	return nil
}
