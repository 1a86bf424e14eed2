package plane

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/internal/op"
)

// Order is the order of this rank's calls. It is the goroutine's that makes the calls.
type Order struct {
	group     *group.Group
	share     *Share
	unchecked bool           // Options.Unchecked
	entered   *atomic.Uint64 // this rank's words in the region
	records   []call.Record
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
	r := &c.records[c.Calls&uint64(len(c.records)-1)]
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
	op.StoreRecord(r, &k.Record, c.Calls, hash, kind)
	ordered.Store((*uint64)(unsafe.Pointer(c.entered)), c.Calls<<32|uint64(hash))
}

// Entered is what this rank has said of the collective it entered last, or of the back-th before it.
func (c *Order) Entered(back uint64) call.Record {
	if back > c.Calls {
		return call.Record{}
	}
	return op.LoadRecord(c.share.Local.Call(c.share.Me, c.Calls-back))
}

// Current is the call under way. It is the goroutine's that makes the calls.
type Current struct {
	began    int64      // coarse
	running  *call.Call // nil once it has slept, and while there is none
	lockstep bool       // the call is in rounds among all ranks of this host
}

// Begin notes that k begins now; k is nil where none is to be noted as asleep. lockstep says that k
// is a call in rounds among all ranks of this host: then ranks that have not posted are late.
func (c *Current) Begin(k *call.Call, now int64, lockstep bool) {
	c.began, c.running, c.lockstep = now, k, lockstep
}

// Since is when it began.
func (c *Current) Since() int64 { return c.began }

// InRounds notes whether it is in lockstep: see Begin.
func (c *Current) InRounds(yes bool) { c.lockstep = yes }

// Slept reports whether it has slept.
func (c *Current) Slept() bool { return c.running == nil }

// Begin begins a call, k or, where that is nil, several: see Current. It is the proposal for why
// the Comm fails or has failed, if there is one: then no call begins.
func (c *Member) Begin(k *call.Call, lockstep bool) *call.Fault {
	if f := c.Fate.proposal.Load(); f != nil {
		return f
	}
	c.Current = Current{c.Clock.Now(), k, lockstep}
	return nil
}

// EndCall ends the call under way, and wakes the ranks that wait for what it has posted.
func (c *Member) EndCall() {
	if c.Current.running == nil {
		c.EndSleep()
	} else if c.Standing.Bell.Set {
		c.Unpark()
	}
	c.Current.running = nil
	if c.Share.sleepers.Load() != 0 {
		wakeSleepers(c)
	}
}

// The counters of rounds, collectives and records have 32 bits, or travel in 32, and begin again at
// 0. They begin at 0 to start with, unless a test wants to see them get there: all ranks of a Comm
// begin at the same number then, as if they had made that many calls.

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
