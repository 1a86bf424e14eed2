package plane

import inject "github.com/goccl/goccl/ccl/internal/fault"

// The counters of rounds, collectives and records have 32 bits, or travel in 32, and begin again at 0. They begin at 0
// to start with, unless a test wants to see them get there: all ranks of a Comm begin at the same number then, as if they
// had made that many calls.

// firstNumber is where the counters of a new Comm begin.
func firstNumber() uint32 { return inject.From("cpu.counters") }

// BeginAt sets the counters of a Comm that has made no call. Its pipes begin there, too, as they are made.
func (c *Member) BeginAt(start uint32) {
	if start == 0 {
		return
	}
	c.Start, c.Round, c.Calls = start, start, uint64(start)
	for i := range c.Local.Depth {
		*c.Local.Flag(c.Me, start-i) = uint64(start-i)<<32 | 1
	}
	c.Local.Entered(c.Me).Store(uint64(start) << 32)
}
