package mail

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/op"
)

// A receive that is posted while its Account ends, after the end has looked at what waits, ends with it, also where a payload is on its
// way: nothing would end it if that never came.
func TestReceiveAsItsAccountEnds(t *testing.T) {
	w := newTown(t, false, 0, 0)
	a := w.open(1, 0)
	p := Path{Comm: 1, Tag: 4}
	code := takenWell
	var moves *Receiving
	x := come(0, 7, true, &code, &moves)
	a.box.deliver(p, x)
	r := &Receiving{from: Any, got: intake{source: -1}}
	r.begin(a, bytesOf(make([]byte, 1), p.Tag))
	require.Nil(t, a.take(r, Any))
	why := call.NewFault(call.RankLost, 0, "")
	a.mu.Lock() // as End does, up to where it shuts the box
	a.over = why
	a.mu.Unlock()
	r.expire(why)
	a.box.post(r)
	require.Same(t, r, moves)
	a.posted(r)
	require.Same(t, why, await(t, r))
	x.answer(r.received(r.copyIn([]byte{7})), 0, 0) // it comes all the same
	require.Equal(t, takenFailed, code)
}

// A line keeps nothing of a Comm that its rank has closed, also if a connection breaks later that may have lost messages of it.
func TestCutAfterClose(t *testing.T) {
	w := newTown(t, false, 0, 1)
	a := w.open(0, 0)
	w.abyss.Store(1, true)
	require.Nil(t, await(t, a.Send(bytesOf([]byte{1}, 1), 1)))
	a.End(call.NewFault(call.Closed, -1, ""), true)
	l := a.office.line(0, 1)
	l.mu.Lock()
	require.Len(t, l.out, 1)
	l.mu.Unlock()
	w.breakLast()
	w.eventually(t, func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.out) == 0 })
	l.mu.Lock()
	defer l.mu.Unlock()
	require.Empty(t, l.cut)
}

// Close closes each stream that the Office has taken, also one that nobody reads yet: the reader begins no more.
func TestCloseBeforeAStreamIsRead(t *testing.T) {
	w := newTown(t, false, 0, 1)
	o := w.offices[1]
	here, there := auth.Pipe()
	in := &inlet{office: o, from: 0, to: 1, box: o.box(1), stream: there}
	require.NoError(t, here.SetReadDeadline(time.Now().Add(10*time.Second)))
	require.True(t, o.keep(there, in)) // as Accept does, up to where it has it read
	o.Close()
	o.run(in.read)
	_, err := here.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

// A sender in the receiver's process gives a large message up while it is copied: it waits for a piece of the copy, and not for all.
func TestCopyIsGivenUp(t *testing.T) {
	w := newTown(t, false, 0, 0)
	a, b := w.two()
	mem, got := make([]byte, 64<<20), make([]byte, 64<<20)
	for range 200 {
		r := b.Recv(What{Type: op.Uint8, Count: len(got), Mem: got}, 0)
		s := a.Send(What{Type: op.Uint8, Count: len(mem), Mem: mem}, 1)
		for some := false; !some && !r.isOver(); {
			r.mu.Lock()
			some = !r.over && r.got.filled > 0 && r.got.filled < len(got)
			r.mu.Unlock()
		}
		s.expire(call.NewFault(call.Timeout, 1, ""))
		w.eventually(t, func() bool { r.Cancel(); return r.isOver() })
		if r.Fault() == nil { // all was there before
			continue
		}
		require.Equal(t, call.Timeout, await(t, s).Code)
		require.True(t, IsCanceled(r.Fault()), "it waits again, and is canceled")
		require.Empty(t, a.office.line(0, 1).left())
		return
	}
	t.Fatal("no copy was seen before its end")
}
