package mail

import (
	"io"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/op"
)

// breakLast breaks the connection that was made last.
func (w *town) breakLast() {
	w.mu.Lock()
	s := w.streams[len(w.streams)-1]
	w.mu.Unlock()
	s.Close()
}

// A connection that breaks while nothing is on its way is made anew, and nothing is amiss.
func TestStreamBeginsAnew(t *testing.T) {
	w := newTown(t, false, 0, 1)
	a, b := w.two()
	for i := range 20 {
		for _, n := range sizes {
			got := make([]byte, n)
			s := a.Send(bytesOf(pattern(n, i), 1), 1)
			require.Nil(t, await(t, b.Recv(bytesOf(got, 1), 0)))
			require.Nil(t, await(t, s))
			require.Equal(t, pattern(n, i), got)
		}
		require.Empty(t, a.office.line(0, 1).left())
		w.breakLast()
		w.eventually(t, func() bool { l := a.office.line(0, 1); l.mu.Lock(); defer l.mu.Unlock(); return l.streams.now == nil })
	}
}

// Where a message may be lost with a connection, its Comm fails on both ranks, and nothing that was sent
// later is received in its place, whether or not its sender has had success. Another Comm that has nothing
// on its way goes on.
func TestStreamBreaks(t *testing.T) {
	for _, tc := range []struct {
		name string
		size int
	}{{"its sender has had success", 1}, {"its sender waits", 2 * eagerMost}} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTown(t, false, 0, 1)
			a, b := w.two()
			other := func(self int) *Account {
				in := Membership{Comm: 2, Self: self, Others: []int{1 - self}, Severed: w.severed(nil)}
				in.Left = func(int) bool { return false }
				return w.offices[self].Open(in)
			}
			c, d := other(0), other(1)
			w.abyss.Store(1, true) // what is sent is on its way for good
			s := a.Send(bytesOf(make([]byte, tc.size), 1), 1)
			w.eventually(t, func() bool { l := a.office.line(0, 1); l.mu.Lock(); defer l.mu.Unlock(); return len(l.out) == 1 })
			if tc.size == 1 {
				require.Nil(t, await(t, s))
			}
			w.abyss.Delete(1)
			hold := w.holdSevered()
			w.breakLast()
			w.eventually(t, func() bool { l := a.office.line(0, 1); l.mu.Lock(); defer l.mu.Unlock(); return len(l.out) == 0 })
			later := a.Send(bytesOf([]byte{2}, 1), 1)
			canceled := a.Send(bytesOf([]byte{2}, 1), 1)
			canceled.Cancel()
			require.Equal(t, call.Canceled, await(t, canceled).Code)
			got, fine := make([]byte, 1), make([]byte, 1)
			r := b.Recv(bytesOf(got, 1), 0)
			c.Send(bytesOf([]byte{7}, 1), 1)
			require.Nil(t, await(t, d.Recv(bytesOf(fine, 1), 0)), "of another Comm, by the next connection")
			require.Equal(t, byte(7), fine[0])
			hold()
			for _, m := range []interface {
				Done() <-chan struct{}
				Fault() *call.Fault
			}{later, r, a.Send(bytesOf(nil, 1), 1), b.Recv(bytesOf(nil, 1), 0)} {
				f := await(t, m)
				require.Equal(t, call.Backend, f.Code)
				require.ErrorContains(t, f, "the connection for messages from world rank 0 to 1 broke")
			}
			require.Zero(t, got[0])
			if tc.size > 1 {
				require.Equal(t, call.Backend, await(t, s).Code)
			}
		})
	}
}

// The receiver compares the numbers of messages: with the one before, and as a stream begins with what came
// by those before.
func TestStreamIsCompared(t *testing.T) {
	begin := func(nth, next, first uint64) frame {
		return frame{kind: frameBegin, number: nth, seq: next, count: first}
	}
	head := func(seq uint64) frame {
		return frame{kind: frameHead, path: Path{Comm: 1, Tag: int64(seq)}, typ: op.Uint8, seq: seq}
	}
	for _, tc := range []struct {
		name    string
		streams [][]frame
		came    []int64
		lost    bool
	}{
		{"one", [][]frame{{begin(1, 1, 1), head(1), head(2)}}, []int64{1, 2}, false},
		{"a gap", [][]frame{{begin(1, 1, 1), head(1), head(3)}}, []int64{1}, true},
		{"twice", [][]frame{{begin(1, 1, 1), head(1), head(1)}}, []int64{1}, true},
		{"two that follow", [][]frame{{begin(1, 1, 1), head(1)}, {begin(2, 2, 2), head(2)}}, []int64{1, 2}, false},
		{"what the sender takes for lost has come", [][]frame{{begin(1, 1, 1), head(1), head(2)}, {begin(2, 3, 2), head(3)}}, []int64{1, 2, 3}, false},
		{"what the sender takes for lost is lost", [][]frame{{begin(1, 1, 1), head(1)}, {begin(2, 3, 2), head(3)}}, []int64{1, 3}, false},
		{"what the sender takes for received is lost", [][]frame{{begin(1, 1, 1), head(1)}, {begin(2, 3, 3), head(3)}}, []int64{1}, true},
		{"what has come comes again", [][]frame{{begin(1, 1, 1), head(1)}, {begin(2, 1, 1), head(1)}}, []int64{1}, true},
		{"an earlier one that is read late", [][]frame{{begin(2, 1, 1), head(1)}, {begin(1, 1, 1), head(1)}}, []int64{1}, false},
		{"without a beginning", [][]frame{{head(1)}}, nil, false},
		{"two beginnings", [][]frame{{begin(1, 1, 1), begin(2, 1, 1), head(1)}}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newTown(t, false, 0, 1)
			b := w.open(1, 0)
			failed := b.Recv(bytesOf(nil, 99), 0)
			for _, frames := range tc.streams {
				here, there := auth.Pipe()
				w.offices[1].Accept(there, 0, 1)
				for _, f := range frames {
					var buf [frameBytes]byte
					f.encode(buf[:])
					if _, err := here.Write(buf[:]); err != nil {
						break
					}
				}
				here.CloseWrite()
				here.Close()
				w.eventually(t, func() bool {
					w.offices[1].mu.Lock()
					defer w.offices[1].mu.Unlock()
					return w.offices[1].streams[there] == nil
				})
			}
			last := int64(0)
			if in := w.offices[1].inlets[[2]int{0, 1}]; in != nil {
				last = int64(in.last)
			}
			assert.Equal(t, slices.Max(append(tc.came, 0)), last)
			if tc.lost {
				f := await(t, failed)
				require.Equal(t, call.Backend, f.Code)
				require.ErrorIs(t, f, errLost)
				return
			}
			for _, tag := range tc.came {
				b.box.mu.Lock()
				assert.Len(t, b.box.slots[Path{Comm: 1, Tag: tag}].arrived, 1, "message %d", tag)
				b.box.mu.Unlock()
			}
			b.mu.Lock()
			require.Nil(t, b.over)
			b.mu.Unlock()
			b.box.mu.Lock()
			require.Len(t, b.box.slots, len(tc.came)+1, "and the receive that waits")
			b.box.mu.Unlock()
		})
	}
}

// drain reads what nobody is to get.
func drain(s *auth.Stream) { _, _ = io.Copy(io.Discard, s) }

// eventually waits until that is so.
func (w *town) eventually(t *testing.T, is func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(end), "it never is")
	}
}
