package plane

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/region"
)

// Order is the order of this rank's calls. It is the goroutine's that makes the calls.
type Order struct {
	group     *group.Group
	share     *Share
	unchecked bool           // Options.Unchecked
	entered   *atomic.Uint64 // this rank's words in the region
	records   region.Records
	Start     uint32 // where the counters have begun: see BeginAt
	Calls     uint64 // collectives made
	order     uint32 // their hash
	Round     uint32 // the last round opened
}

// Mixed is the hash of all collectives up to k, which is the next.
func (c *Order) Mixed(k *call.Call) uint32 {
	if c.group.Unchecked() {
		return 1
	}
	return (c.order*0x01000193 ^ k.Hash) | 1
}

// Enter gives a collective its place in the order of collectives, which point-to-point
// calls do not count in, and makes its hash that of all of them so far: a rank that
// received nothing in a call that differed finds out in the next.
func (c *Order) Enter(k *call.Call) {
	c.Calls++
	r := c.records.At(c.Calls)
	if !call.Checked {
		k.Hash, k.Place = 1, c.Calls
		r.Place, r.Hash = c.Calls, 1
		return
	}
	c.order = c.order*0x01000193 ^ k.Hash
	hash := c.order | 1
	if c.unchecked {
		hash = 1
	}
	k.Hash = hash
	k.Place = c.Calls
	kind := k.Kind
	if k.Inside != 0 {
		kind = k.Inside
	}
	call.StoreRecord(r, &k.Record, c.Calls, hash, kind)
	ordered.Store((*uint64)(unsafe.Pointer(c.entered)), c.Calls<<32|uint64(hash))
}

// Entered is what this rank has said of the collective it entered last, or of the back-th before it.
func (c *Order) Entered(back uint64) call.Record {
	if back > c.Calls {
		return call.Record{}
	}
	return call.LoadRecord(c.share.Local.Call(c.share.Me, c.Calls-back))
}

// The counters of rounds, collectives and records have 32 bits, or travel in 32, and begin again at 0. They begin at 0
// to start with, unless a test wants to see them get there: all ranks of a Comm begin at the same number then, as if they
// had made that many calls.

// firstNumber is where the counters of a new Comm begin.
func firstNumber() uint32 { return inject.From("cpu.counters") }

// BeginAt sets the counters of a Comm that has made no call. Its pipes begin there, too, as they are made.
func (c *Order) BeginAt(start uint32) {
	if start == 0 {
		return
	}
	c.Start, c.Round, c.Calls = start, start, uint64(start)
	for i := range c.share.Local.Depth {
		*c.share.Local.Flag(c.share.Me, start-i) = uint64(start-i)<<32 | 1
	}
	c.share.Local.Entered(c.share.Me).Store(uint64(start) << 32)
}
