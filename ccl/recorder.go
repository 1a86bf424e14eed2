package ccl

import (
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/goccl/goccl/ccl/internal/call"
)

// ringCalls is how many calls the flight recorder keeps.
const ringCalls = 64

// The flight recorder keeps the last calls of a Comm. The goroutine that makes a blocking call writes it without a
// lock, which would cost as much as a small call. Who reads it meanwhile, which happens only once the Comm
// has failed or a call hangs, may see an entry that is half written. The race detector cannot
// know that this does no harm: with it there is a lock.

type recording struct {
	mu       sync.Mutex
	launches launches
}

func (r *recording) begin() {
	if raceEnabled {
		r.mu.Lock()
	}
}

func (r *recording) end() {
	if raceEnabled {
		r.mu.Unlock()
	}
}

// begin notes the next call, which blocks.
func (c *Comm) begin(k *call.Call) *call.Record {
	c.recording.begin()
	c.seq++
	r := &c.ring[c.seq%ringCalls]
	k.Start = c.eng.Now()
	// Field by field, and the hash, which has just been written, from its other copy: see call.StoreRecord.
	r.Seq, r.Count, r.Start, r.End = k.Seq, k.Count, k.Start, 0
	r.Root, r.Hash, r.Number = k.Root, k.Own, 0
	r.Kind, r.Type, r.Op, r.State, r.Times = k.Kind, k.Type, k.Op, uint8(Running), k.Times
	c.recording.end()
	return r
}

// end notes how it ended.
func (c *Comm) end(r *call.Record, s State) {
	c.recording.begin()
	r.State, r.End = uint8(s), c.eng.Now()
	c.recording.end()
}

// Trace yields the last calls made on c, oldest first: the flight recorder. Any goroutine may call
// it.
func (c *Comm) Trace() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		if c.none() {
			return
		}
		for _, call := range c.kept(ringCalls) {
			if !yield(call) {
				return
			}
		}
	}
}

// kept lists the last calls, at most n.
func (c *Comm) kept(n uint64) []Call {
	c.mu.Lock()
	c.recording.begin()
	ring, last, issuers := c.ring, c.seq, c.issuers
	c.recording.end()
	c.mu.Unlock()
	var calls []Call
	for s := last - min(last, n) + 1; s <= last; s++ {
		r := &ring[s%ringCalls]
		issuers[s%ringCalls].settleRecord(r)
		if r.Seq != s {
			continue
		}
		call := callOf(r)
		call.Caller = c.caller(s)
		calls = append(calls, *call)
	}
	return c.recording.launches.among(calls, int(n))
}

// lastCalls is a line of this rank's last calls.
func (c *Comm) lastCalls(n uint64) string {
	var b strings.Builder
	for _, call := range c.kept(n) {
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%v %v", &call, call.State)
	}
	if b.Len() == 0 {
		return "none"
	}
	return b.String()
}

// shownCalls is how many calls of each rank a report shows.
const shownCalls = 4
