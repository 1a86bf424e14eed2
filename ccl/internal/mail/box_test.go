package mail

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/race"
)

// told is what the sender of a message was told; none: nothing.
const none = uint8(99)

// come is a message of one byte from a rank as a Box gets it. Its payload is there at once, unless later is
// set: then fetch is noted.
func come(from int, x byte, later bool, code *uint8, moves **Receiving) *arrival {
	*code = none
	a := &arrival{from: from, typ: op.Uint8, count: 1, answer: func(c uint8, _ op.Type, _ uint64) { *code = c }}
	if later {
		a.fetch = func(r *Receiving) { *moves = r }
	} else {
		a.body = []byte{x}
	}
	return a
}

// A match is undone, since its sender gave the message up while it came, only if nothing has been received
// since that would have been given to the same receive: then that waits where it did. Else it has lost its
// place, and ends.
func TestUndo(t *testing.T) {
	type message struct {
		from int
		x    byte
	}
	for _, tc := range []struct {
		name     string
		receives []int     // from whom, in the order in which they are posted
		first    int       // from whom the message is that is given up
		mover    int       // which receive it is given
		between  []message // that come while it moves
		after    []message // that come after it was given up
		want     []string  // of each receive: the message, or lost
	}{
		{"nothing came since", []int{0, 0}, 0, 0, nil, []message{{0, 2}, {0, 3}}, []string{"2", "3"}},
		{"a later one was received", []int{0, 0, 0}, 0, 0, []message{{0, 2}}, []message{{0, 3}}, []string{"lost", "2", "3"}},
		{"a later one waits", []int{0}, 0, 0, []message{{0, 2}}, nil, []string{"2"}},
		{"one that was not for it was received", []int{0, 2}, 0, 0, []message{{2, 9}}, []message{{0, 2}}, []string{"2", "9"}},
		{"one from any rank was received", []int{Any, Any}, 0, 0, []message{{2, 9}}, nil, []string{"lost", "9"}},
		{"one was posted before", []int{2, Any}, 0, 1, nil, []message{{2, 9}, {0, 2}}, []string{"9", "2"}},
		{"one was posted before, and one behind", []int{2, Any, Any}, 0, 1, nil, []message{{2, 9}, {0, 2}, {0, 3}}, []string{"9", "2", "3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTown(t, false, 0, 0, 0)
			a := w.open(1, 0)
			p := Path{Comm: 1, Tag: 4}
			var mems [][]byte
			var all []*Receiving
			for _, from := range tc.receives {
				mems = append(mems, make([]byte, 1))
				all = append(all, a.Recv(bytesOf(mems[len(mems)-1], p.Tag), from))
			}
			var code uint8
			var mover *Receiving
			a.box.deliver(p, come(tc.first, 1, true, &code, &mover))
			require.Same(t, all[tc.mover], mover)
			for _, m := range tc.between {
				var code uint8
				a.box.deliver(p, come(m.from, m.x, false, &code, nil))
			}
			mover.again()
			for _, m := range tc.after {
				var code uint8
				a.box.deliver(p, come(m.from, m.x, false, &code, nil))
			}
			for i, r := range all {
				got := "lost"
				if f := await(t, r); f == nil {
					got = fmt.Sprint(mems[i][0])
				} else {
					assert.Equal(t, call.Canceled, f.Code)
					assert.Equal(t, tc.first, f.Peer)
				}
				assert.Equal(t, tc.want[i], got, "receive %d", i)
			}
			assert.Equal(t, none, code, "a rank that gives a message up need not be told that it did")
			assert.Empty(t, a.box.slots)
		})
	}
}

// A receive whose limit ends while a message is being put into it takes that with it only if its sender has
// no success, and is told.
func TestLimitEndsWhileMatched(t *testing.T) {
	late := call.NewFault(call.Timeout, 0, "")
	p := Path{Comm: 1, Tag: 4}
	for _, tc := range []struct {
		name  string
		later bool // the payload is still to come
		code  uint8
		why   *call.Fault
	}{
		{"its payload is here", false, takenWell, nil},
		{"its payload is on its way", true, takenLeft, late},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTown(t, false, 0, 0)
			a := w.open(1, 0)
			r := a.Recv(bytesOf(make([]byte, 1), p.Tag), 0)
			var code uint8
			var moves *Receiving
			x := come(0, 7, tc.later, &code, &moves)
			a.box.mu.Lock() // as deliver does, up to where it lets go of the box
			s := a.box.at(p)
			_, found := take(&s.posted, func(*Receiving) bool { return true })
			require.True(t, found)
			s.matched(r, x)
			a.box.tidy(p, s)
			a.box.mu.Unlock()
			r.expire(late)
			match(r, x)
			if moves != nil {
				x.answer(moves.received(moves.copyIn([]byte{7})), 0, 0)
			}
			require.Same(t, tc.why, await(t, r))
			require.Equal(t, tc.code, code)
			require.Empty(t, a.box.slots)
		})
	}
}

// Receives with limits that end as messages come: each message is received, or its sender hears that it is not.
func TestLimitsAtRandom(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		for i := range 200 {
			for _, n := range []int{8, 2 * eagerMost} {
				got := make([]byte, n)
				r := b.Recv(bytesOf(got, int64(n)), Any)
				go r.expire(call.NewFault(call.Timeout, 0, ""))
				s := a.Send(bytesOf(pattern(n, i), int64(n)), 1)
				if await(t, r) != nil && await(t, b.tryAgain(got, s)) != nil {
					require.Equal(t, call.Canceled, await(t, s).Code)
					continue
				}
				require.Nil(t, await(t, s))
				require.Equal(t, pattern(n, i), got)
			}
		}
	})
}

// tryAgain receives what s sends, which an earlier receive has not, unless s has ended for that.
func (a *Account) tryAgain(mem []byte, s *Sending) *Receiving {
	r := a.Recv(bytesOf(mem, s.path.Tag), Any)
	s.Then(func() {
		if s.Fault() != nil {
			r.Cancel()
		}
	})
	return r
}

// What waits on Comms that the receiver has closed, or that have failed there, gives its credit back, also
// if the receiver had no Account in them. So small messages stay complete before they are received.
func TestCreditComesBack(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		for comm := uint64(2); comm < 6; comm++ {
			a := w.offices[w.process[0]].Open(Membership{Comm: comm, Others: []int{1}, Left: func(int) bool { return false }})
			for range creditMost / eagerMost {
				require.Nil(t, await(t, a.Send(bytesOf(make([]byte, eagerMost), 3), 1)))
			}
			w.offices[w.process[1]].Shut(comm, 1, comm%2 == 0)
			require.Empty(t, a.office.line(0, 1).left())
			a.End(call.NewFault(call.Closed, -1, ""), true)
		}
		require.Nil(t, await(t, w.open(0, 0).Send(bytesOf(make([]byte, 8), 1), 1)))
	})
}

// What runs when messages end may send and receive without end: it takes no stack, whichever end comes first.
func TestOnDoneTakesNoStack(t *testing.T) {
	for _, first := range []string{"the receive is first", "the send is first"} {
		t.Run(first, func(t *testing.T) {
			a := newTown(t, false, 0).open(0, 0)
			most := 100_000
			if race.Enabled {
				most = 5_000
			}
			n, deepest, done := 0, 0, make(chan struct{})
			x := make([]byte, 1)
			var next func()
			next = func() {
				deepest = max(deepest, runtime.Callers(0, make([]uintptr, 100)))
				if n++; n == most {
					close(done)
					return
				}
				if first != "the send is first" {
					a.Recv(bytesOf(x, 1), 0).Then(next)
					a.Send(bytesOf([]byte{1}, 1), 0)
				} else {
					a.Send(bytesOf([]byte{1}, 1), 0)
					a.Recv(bytesOf(x, 1), 0).Then(next)
				}
			}
			next()
			select {
			case <-done:
			case <-time.After(2 * time.Minute):
				t.Fatal("the chain has not ended")
			}
			require.Less(t, deepest, 30)
		})
	}
}

// What runs when messages end runs in the order in which they end, once each, also after one that ends its
// goroutine.
func TestOrderOfOnDone(t *testing.T) {
	a := newTown(t, false, 0).open(0, 0)
	const n = 1000
	got := make(chan int, n+1)
	for i := range n {
		r := a.Recv(bytesOf(make([]byte, 1), 1), 0)
		r.Then(func() {
			got <- i
			if i%100 == 0 {
				runtime.Goexit()
			}
		})
	}
	for range n {
		a.Send(bytesOf([]byte{1}, 1), 0)
	}
	for i := range n {
		require.Equal(t, i, <-got)
	}
	require.Empty(t, got)
}

// Limits are counted in time lived: while the clock stands still, since the process is stopped, none ends.
func TestLimitStandsStill(t *testing.T) {
	w := newTown(t, false, 0, 1)
	at := time.Duration(0)
	w.frozen.Store(&at)
	a, b := w.two()
	got := make([]byte, 1)
	what := bytesOf(got, 1)
	what.Within = time.Nanosecond
	r, never := b.Recv(what, 0), b.Recv(What{Tag: 2, Type: op.Uint8, Count: 1, Mem: []byte{0}, Within: time.Nanosecond}, 0)
	for before := w.looks.Load(); w.looks.Load() < before+5; {
		time.Sleep(time.Millisecond)
	}
	require.Nil(t, await(t, a.Send(bytesOf([]byte{3}, 1), 1)))
	require.Nil(t, await(t, r))
	w.frozen.Store(nil)
	require.Equal(t, call.Timeout, await(t, never).Code)
}
