package ccl

import (
	"fmt"
	"iter"
	"sync"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/race"
)

// ringCalls is how many calls the flight recorder keeps.
const ringCalls = 64

// The flight recorder keeps the last calls of a Comm. The goroutine that makes a blocking call writes it without a
// lock, which would cost as much as a small call. Who reads it meanwhile, which happens only once the Comm
// has failed or a call hangs, may see an entry that is half written. The race detector cannot
// know that this does no harm: with it there is a lock.

// recorder is the flight recorder of one Comm.
type recorder struct {
	clock    *plane.Clock             // of the job
	seq      uint64                   // the last call's number
	ring     [ringCalls]call.Record   // the last calls, by number
	issuers  [ringCalls]*deviceStream // of the calls in ring, if on a device
	race     sync.Mutex               // guards the above from the race detector alone
	launches launches
	callers  callers
	teller   teller // of calls on devices, see observe_device.go
}

// begin gives k, which begins now, the next place in the order, and notes it: a call that blocks,
// or one on a device, by its stream. It writes the record field by field, and the hash, which has
// just been written, from its other copy: see op.StoreRecord.
func (r *recorder) begin(k *call.Call, by *deviceStream, now int64) *call.Record {
	if race.Enabled {
		r.race.Lock()
		defer r.race.Unlock()
	}
	r.seq++
	i := r.seq % ringCalls
	e := &r.ring[i]
	k.Seq, k.Start = r.seq, now
	e.Seq, e.Count, e.Root, e.Hash = r.seq, k.Count, k.Root, k.Own
	e.Start, e.End = now, 0
	e.SetWhat(&k.Record) // a call that is described is Running
	r.issuers[i] = by
	return e
}

// queue gives k, which waits for its turn, the next place in the order. The backlog is locked.
func (r *recorder) queue(k *call.Call) {
	r.seq++
	k.Seq = r.seq
	e := &r.ring[k.Seq%ringCalls]
	*e, r.issuers[k.Seq%ringCalls] = k.Record, nil
	e.State = uint8(Issued)
}

// mark notes the state of a queued call. The backlog is locked.
func (r *recorder) mark(k *call.Call, s State, now int64) {
	e := &r.ring[k.Seq%ringCalls]
	if e.Seq != k.Seq {
		return
	}
	e.State = uint8(s)
	if s == Running {
		e.Start = now
	} else {
		e.End = now
	}
}

// end notes how a blocking call ended.
func (r *recorder) end(e *call.Record, s State, now int64) {
	if race.Enabled {
		r.race.Lock()
		defer r.race.Unlock()
	}
	e.State, e.End = uint8(s), now
}

// Trace yields the last calls made on c, oldest first: the flight recorder. Any goroutine may call
// it.
func (c *Comm) Trace() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		if c.isNil() {
			return
		}
		for _, call := range c.rec.kept(&c.backlog, ringCalls) {
			if !yield(call) {
				return
			}
		}
	}
}

// kept lists the last calls, at most n. The backlog is locked meanwhile, under which queued calls are noted.
func (r *recorder) kept(b *backlog, n uint64) []Call {
	b.mu.Lock()
	if race.Enabled {
		r.race.Lock()
	}
	ring, last, issuers := r.ring, r.seq, r.issuers
	if race.Enabled {
		r.race.Unlock()
	}
	b.mu.Unlock()
	var calls []Call
	for s := last - min(last, n) + 1; s <= last; s++ {
		e := &ring[s%ringCalls]
		issuers[s%ringCalls].settleRecord(e)
		if e.Seq != s {
			continue
		}
		call := callOf(e)
		call.Caller = r.callers.of(s)
		calls = append(calls, *call)
	}
	return r.launches.among(calls, int(n))
}

// callsText is a line of calls.
func callsText(calls []Call) string {
	if len(calls) == 0 {
		return "none"
	}
	return joined(calls, "; ", func(call Call) string { return fmt.Sprintf("%v %v", &call, call.State) })
}

// shownCalls is how many calls of each rank a report shows.
const shownCalls = 4
