package cpu

import inject "github.com/goccl/goccl/ccl/internal/fault"

// The counters of rounds, collectives and records have 32 bits, or travel in 32, and begin again at 0. They begin at 0
// to start with, unless a test wants to see them get there: all ranks of a Comm begin at the same number then, as if they
// had made that many calls.

// firstNumber is where the counters of a new Comm begin.
func firstNumber() uint32 { return inject.From("cpu.counters") }

// beginAt sets the counters of a Comm that has made no call. Its pipes begin there, too, as they are made.
func (c *Member) beginAt(start uint32) {
	if start == 0 {
		return
	}
	c.start, c.round, c.calls = start, start, uint64(start)
	for i := range c.local.depth {
		*c.local.flag(c.me, start-i) = uint64(start-i)<<32 | 1
	}
	c.local.entered(c.me).Store(uint64(start) << 32)
}

// beginAt sets the counters of a pipe that nobody reads yet.
func (p *pipeWriter) beginAt(start uint32) {
	if start == 0 {
		return
	}
	p.wrote, p.freed = start, start
	for i := range uint32(len(p.cells)) {
		p.at(start - 1 - i).flag = uint64(start-i)<<32 | 1
	}
	p.taken().Store(uint64(start))
}

func (p *pipeReader) beginAt(start uint32) { p.read, p.told = start, start }
