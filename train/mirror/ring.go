package mirror

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// errRestore is why an exchange ends that is under way when Restore begins.
var errRestore = errors.New("mirror: the ranks go back to an earlier step")

// exchange is the background part of a Save.
type exchange struct {
	done chan struct{}
	err  error // once done is closed
}

// ringOrder orders ranks by their local number, and within one by host: neighbors are on different
// hosts where hosts have equally many ranks and there are several.
func ringOrder(places []ccl.Place) []int {
	order := make([]int, len(places))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(places[a].Local, places[b].Local), cmp.Compare(places[a].Node, places[b].Node),
			cmp.Compare(a, b))
	})
	return order
}

// unwatched makes of the Options of the program's Comm those of a Mirror's.
func unwatched(o *ccl.Options) { o.Name, o.OnCall, o.OnFailure = "mirror", nil, nil }

// begin starts the exchange of the slot that was written last. Without send this rank's holder has
// its state already.
func (m *Mirror) begin(send bool) {
	x := &exchange{done: make(chan struct{})}
	m.under = x
	s, other := &m.slots[m.last], &m.slots[1-m.last]
	if m.ring == nil { // one rank: there is nobody to hold its state
		s.whole = true
		close(x.done)
		return
	}
	ring := m.ring
	go func() {
		defer close(x.done)
		if x.err = m.swap(ring, s, other, send && m.copies(m.rank) == 1); x.err != nil && ring.Err() == nil {
			ring.Abort(x.err) // so that no rank waits for this one
		}
	}()
}

// swap sends s.own to its holder, receives s.held, and returns once all ranks have theirs. It does
// not touch the other slot, where that has a state. That is overwritten only after swap has returned
// without an error on this rank, when every rank has all of s: whichever is lost then, what is
// restored is whole.
//
// Where the ring is another one than when s was written, s.held may be the only copy of a rank that
// has another holder now, and not yet there. Then what comes goes into the other slot if that is
// free, and takes its place in s once all ranks have theirs.
func (m *Mirror) swap(ring *ccl.Comm, s, other *slot, send bool) error {
	ctx := context.Background() // Options.Timeout and Abort end it
	n, r := ring.Size(), ring.Rank()
	from, to := (r+n-m.o.Away%n)%n, (r+m.o.Away)%n
	owner := m.order[from]
	into := &s.held
	if s.held.step == s.own.step && s.held.owner != owner && other.own.step < 0 {
		into = &other.held
	}
	out := []int64{int64(s.own.step), int64(len(s.own.data))}
	if !send {
		out[1] = -1
	}
	in := []int64{0, 0}
	if err := ccl.SendRecv(ctx, ring, in, from, out, to); err != nil {
		return err
	}
	if in[0] != out[0] {
		return fmt.Errorf("mirror: rank %d saves step %d, and rank %d step %d", m.rank, out[0], m.order[from], in[0])
	}
	m.at(m.rank, s.own.step, "header")
	gets, gives := in[1] >= 0, out[1] >= 0
	if gets {
		into.step, into.data = -1, raw.Sized(into.data, int(in[1]))
	}
	var err error
	switch {
	case gets && gives:
		err = ccl.SendRecv(ctx, ring, into.data, from, s.own.data, to)
	case gives:
		err = ccl.Send(ctx, ring, s.own.data, to)
	case gets:
		err = ccl.Recv(ctx, ring, into.data, from)
	}
	if err != nil {
		return err
	}
	if gets {
		into.step, into.owner = s.own.step, owner
	}
	m.at(m.rank, s.own.step, "received")
	if err := ccl.Barrier(ctx, ring); err != nil {
		return err
	}
	if into != &s.held && into.step == s.own.step && into.owner == owner { // now, or before a loss cut swap off
		s.held, *into = *into, s.held
		into.step = -1
	}
	s.whole = true
	m.at(m.rank, s.own.step, "whole")
	return nil
}

// Wait waits until what was saved last is whole on all ranks. A program need not call it: Save and
// Close wait by themselves. It is of use before a Restore that no failure has led to, which otherwise
// may go back to the Save before.
func (m *Mirror) Wait(ctx context.Context) error {
	if m.under == nil {
		return nil
	}
	select {
	case <-m.under.done:
		return m.under.err
	case <-ctx.Done():
		return fmt.Errorf("mirror: the exchange of step %d is not done: %w", m.slots[m.last].own.step, context.Cause(ctx))
	}
}

// ended reports whether the last exchange has ended, and with which error.
func (m *Mirror) ended() (done bool, err error) {
	if m.under == nil {
		return false, nil
	}
	select {
	case <-m.under.done:
		return true, m.under.err
	default:
		return false, nil
	}
}

// detach leaves the ring, and returns when nothing uses the slots any more.
func (m *Mirror) detach() {
	if m.ring == nil {
		return
	}
	// Where this rank's exchange is whole all ranks are at the end of theirs, which must not be cut off. One
	// in a later exchange hears that this rank closes the ring.
	if done, err := m.ended(); !done || err != nil {
		m.ring.Abort(errRestore)
	}
	if m.under != nil {
		<-m.under.done
	}
	ring := m.ring
	m.closing.Go(func() { _ = ring.Close() })
	m.ring, m.under = nil, nil
}
