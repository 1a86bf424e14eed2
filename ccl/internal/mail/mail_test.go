package mail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/op"
)

// town is ranks in processes, each with an Office.
type town struct {
	process []int // by rank
	reads   bool  // one process may read the memory of another
	offices []*Office
	left    sync.Map                      // ranks that the control plane knows to have left
	deaf    sync.Map                      // processes that cannot be reached
	frozen  atomic.Pointer[time.Duration] // what the clock shows while it stands still
	abyss   sync.Map                      // those that get nothing of what is sent to them
	looks   atomic.Int64                  // at the clock

	mu       sync.Mutex
	streams  []*auth.Stream
	accounts []*Account
	held     sync.RWMutex // while it is locked, no Comm fails
}

type way struct {
	*town
	me int
}

func (w way) Here(rank int) bool  { return w.process[rank] == w.me }
func (w way) Reads(rank int) bool { return w.reads }
func (w way) Attend()             {}

var born = time.Now()

func (w way) Lived() time.Duration {
	w.looks.Add(1)
	if at := w.frozen.Load(); at != nil {
		return *at
	}
	return time.Since(born)
}

func (w way) Dial(_ context.Context, from, to int) (*auth.Stream, error) {
	if _, deaf := w.deaf.Load(w.process[to]); deaf {
		return nil, errors.New("nobody there")
	}
	a, b := auth.Pipe()
	w.mu.Lock()
	w.streams = append(w.streams, a)
	w.mu.Unlock()
	if _, lost := w.abyss.Load(w.process[to]); lost {
		go drain(b)
		return a, nil
	}
	w.offices[w.process[to]].Accept(b, from, to)
	return a, nil
}

func newTown(t *testing.T, reads bool, process ...int) *town {
	w := &town{process: process, reads: reads}
	for _, p := range process {
		for len(w.offices) <= p {
			w.offices = append(w.offices, NewOffice(context.Background(), way{w, len(w.offices)}))
		}
	}
	t.Cleanup(func() {
		w.mu.Lock()
		streams := w.streams
		w.mu.Unlock()
		for _, s := range streams { // a pipe has no end of one direction, for which Close would wait
			s.Close()
		}
		for _, o := range w.offices {
			o.Close()
		}
	})
	return w
}

// two are the mail of ranks 0 and 1, without a limit.
func (w *town) two() (a, b *Account) { return w.open(0, 0), w.open(1, 0) }

// open is the mail of a rank in Comm 1, whose members are all.
func (w *town) open(rank int, limit time.Duration) *Account {
	var others []int
	for r := range w.process {
		if r != rank {
			others = append(others, r)
		}
	}
	left := func(r int) bool { _, left := w.left.Load(r); return left }
	a := w.offices[w.process[rank]].Open(Membership{Comm: 1, Self: rank, Others: others, Limit: limit, Left: left, Severed: w.severed(left)})
	w.mu.Lock()
	defer w.mu.Unlock()
	w.accounts = append(w.accounts, a)
	return a
}

// holdSevered has no Comm fail until the function that it returns is called.
func (w *town) holdSevered() (release func()) {
	w.held.Lock()
	return w.held.Unlock
}

// severed fails the Comm on all ranks, as the control plane does, unless the rank has left.
func (w *town) severed(left func(int) bool) func(context.Context, int, error) bool {
	return func(_ context.Context, r int, why error) bool {
		if left != nil && left(r) {
			return true
		}
		w.held.RLock()
		defer w.held.RUnlock()
		w.mu.Lock()
		all := slices.Clone(w.accounts)
		w.mu.Unlock()
		for _, a := range all {
			a.End(call.NewFault(call.Backend, -1, "%w", why), false)
		}
		return false
	}
}

func bytesOf(b []byte, tag int64) What {
	return What{Tag: tag, Type: op.Uint8, Count: len(b), Mem: b}
}

// await waits for a message, and returns why it came to nothing.
func await(t *testing.T, m interface {
	Done() <-chan struct{}
	Fault() *call.Fault
}) *call.Fault {
	t.Helper()
	select {
	case <-m.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the message has not ended")
	}
	return m.Fault()
}

// towns are the ways between ranks 0 and 1; rank 2 lives with rank 0.
var towns = []struct {
	name    string
	reads   bool
	process []int
}{
	{"one process", false, []int{0, 0, 0}},
	{"streams", false, []int{0, 1, 0}},
	{"memory", true, []int{0, 1, 0}},
}

func inTowns(t *testing.T, f func(t *testing.T, w *town)) {
	for _, tc := range towns {
		t.Run(tc.name, func(t *testing.T) { f(t, newTown(t, tc.reads, tc.process...)) })
	}
}

var sizes = []int{0, 1, eagerMost, eagerMost + 1, pieceMost + 7, 3*readMost + 5}

func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8 + seed)
	}
	return b
}

// Messages of all sizes arrive, whoever comes first.
func TestMessagesArrive(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		for i, n := range sizes {
			for _, late := range []bool{false, true} {
				got, want := make([]byte, n), pattern(n, i)
				var r *Receiving
				if !late {
					r = b.Recv(bytesOf(got, 5), 0)
				}
				s := a.Send(bytesOf(want, 5), 1)
				if late {
					r = b.Recv(bytesOf(got, 5), Any)
				}
				require.Nil(t, await(t, r), n)
				require.Nil(t, await(t, s), n)
				require.True(t, bytes.Equal(want, got), n)
				require.Equal(t, 0, r.Source())
			}
		}
	})
}

// The messages of one pair and tag are received in the order in which they were sent; other tags and senders
// do not wait for them.
func TestOrder(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b, c := w.open(0, 0), w.open(1, 0), w.open(2, 0)
		const n = 18
		var sent []*Sending
		for i := range n {
			sent = append(sent, a.Send(bytesOf(pattern(sizes[i%len(sizes)]+1, i), 1), 1))
		}
		sent = append(sent, a.Send(bytesOf([]byte{99}, 2), 1), c.Send(bytesOf([]byte{77}, 1), 1))
		x := make([]byte, 1)
		require.Nil(t, await(t, b.Recv(bytesOf(x, 2), 0)))
		require.Equal(t, byte(99), x[0])
		require.Nil(t, await(t, b.Recv(bytesOf(x, 1), 2)))
		require.Equal(t, byte(77), x[0])
		for i := range n {
			got := make([]byte, sizes[i%len(sizes)]+1)
			require.Nil(t, await(t, b.Recv(bytesOf(got, 1), 0)), i)
			require.True(t, bytes.Equal(pattern(len(got), i), got), i)
		}
		for _, s := range sent {
			require.Nil(t, await(t, s))
		}
	})
}

// A receive of another type or count ends both ends, if the sender is not done by then, and says what differs.
func TestMismatch(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		s := a.Send(bytesOf(make([]byte, 2*eagerMost), 0), 1)
		f := await(t, b.Recv(bytesOf(make([]byte, 3), 0), Any))
		require.Equal(t, call.Mismatch, f.Code)
		require.Equal(t, 0, f.Peer)
		require.ErrorContains(t, f, "it has sent uint8 x 32768; here it is uint8 x 3")
		f = await(t, s)
		require.Equal(t, call.Mismatch, f.Code)
		require.Equal(t, 1, f.Peer)
		got := make([]byte, 1)
		a.Send(bytesOf([]byte{8}, 0), 1)
		require.Nil(t, await(t, b.Recv(bytesOf(got, 0), 0)), "the next message is another")
		require.Equal(t, byte(8), got[0])
	})
}

// What nobody has matched can be given up, at either end, and is as if it had never been.
func TestCancel(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		r := b.Recv(bytesOf(make([]byte, 1), 0), 0)
		r.Cancel()
		require.Equal(t, call.Canceled, await(t, r).Code)
		large := make([]byte, 2*eagerMost)
		s := a.Send(bytesOf(large, 0), 1)
		s.Cancel()
		require.Equal(t, call.Canceled, await(t, s).Code)
		got := make([]byte, 1)
		small := a.Send(bytesOf([]byte{5}, 0), 1)
		require.Nil(t, await(t, small))
		small.Cancel() // complete
		require.Nil(t, await(t, b.Recv(bytesOf(got, 0), Any)))
		require.Equal(t, byte(5), got[0])
	})
}

// A message to a rank that has closed the Comm, or one that waits for it, says so; what was sent before
// arrives.
func TestClosed(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		require.Nil(t, await(t, a.Send(bytesOf([]byte{1}, 0), 1)))
		large := a.Send(bytesOf(make([]byte, 2*eagerMost), 7), 1)
		never := b.Recv(bytesOf(make([]byte, 1), 9), 0)
		a.End(call.NewFault(call.Closed, -1, ""), true)
		require.Equal(t, call.Closed, await(t, large).Code)
		f := await(t, never)
		require.Equal(t, call.Closed, f.Code)
		require.Equal(t, 0, f.Peer)
		got := make([]byte, 1)
		require.Nil(t, await(t, b.Recv(bytesOf(got, 0), 0)), "what was sent before")
		require.Equal(t, byte(1), got[0])
		require.Equal(t, call.Closed, await(t, b.Recv(bytesOf(got, 0), 0)).Code)
		require.Equal(t, call.Closed, await(t, b.Send(bytesOf(make([]byte, 2*eagerMost), 0), 0)).Code)
		require.Equal(t, call.Closed, await(t, a.Recv(bytesOf(got, 0), 1)).Code)
	})
}

// A failure of the Comm ends what is under way, wherever it is.
func TestFailed(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		s, r := a.Send(bytesOf(make([]byte, 2*eagerMost), 0), 1), b.Recv(bytesOf(make([]byte, 1), 1), Any)
		why := call.NewFault(call.RankLost, 2, "")
		a.End(why, false)
		b.End(why, false)
		require.Same(t, why, await(t, s))
		require.Same(t, why, await(t, r))
		require.Same(t, why, await(t, a.Send(bytesOf(nil, 0), 1)))
	})
}

// A message that nobody meets ends with the limit, and names the rank that has not come; so does one whose rank
// cannot be reached.
func TestLimit(t *testing.T) {
	w := newTown(t, false, 0, 1)
	a, b := w.open(0, 50*time.Millisecond), w.open(1, 0)
	f := await(t, a.Recv(bytesOf(make([]byte, 1), 0), 1))
	require.Equal(t, call.Timeout, f.Code)
	require.Equal(t, []int{1}, f.Missing)
	f = await(t, a.Send(bytesOf(make([]byte, 2*eagerMost), 0), 1))
	require.Equal(t, call.Timeout, f.Code)
	what := bytesOf(make([]byte, 1), 0)
	what.Within = 50 * time.Millisecond
	require.Empty(t, await(t, b.Recv(what, Any)).Missing)
	w.deaf.Store(0, true)
	what = bytesOf(make([]byte, 1), 0)
	what.Within = 50 * time.Millisecond
	require.ErrorContains(t, await(t, b.Send(what, 0)), "nobody there")
}

// A rank that has never written to this one, and has left, is found by the control plane.
func TestLeft(t *testing.T) {
	w := newTown(t, false, 0, 1)
	a := w.open(0, 0)
	r, any := a.Recv(bytesOf(make([]byte, 1), 0), 1), a.Recv(bytesOf(make([]byte, 1), 3), Any)
	w.left.Store(1, true)
	require.Equal(t, call.Closed, await(t, r).Code)
	require.Equal(t, call.Closed, await(t, any).Code)
}

// The end of a process ends what waits for its answer, and half of a payload is none.
func TestStreamEnds(t *testing.T) {
	w := newTown(t, false, 0, 1)
	a, b := w.two()
	s := a.Send(bytesOf(make([]byte, 2*eagerMost), 0), 1)
	require.Nil(t, await(t, a.Send(bytesOf(nil, 1), 1)))
	require.Nil(t, await(t, b.Recv(bytesOf(nil, 1), 0)), "the head has come")
	w.left.Store(1, true)
	w.offices[1].Close()
	f := await(t, s)
	require.Equal(t, call.Closed, f.Code)
	require.Equal(t, 1, f.Peer)
}

// All ranks write to all, at once, with crossing messages of all sizes.
func TestManyAtOnce(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		const rounds = 8
		var wg sync.WaitGroup
		accounts := []*Account{w.open(0, 0), w.open(1, 0), w.open(2, 0)}
		for me, a := range accounts {
			for peer := range accounts {
				for tag := range int64(2) {
					size := func(from, to, i int) int { return sizes[(from*31+to*7+i+int(tag))%len(sizes)] }
					wg.Go(func() {
						for i := range rounds {
							assert.Nil(t, await(t, a.Send(bytesOf(pattern(size(me, peer, i), i), tag), peer)))
						}
					})
					wg.Go(func() {
						for i := range rounds {
							got := make([]byte, size(peer, me, i))
							assert.Nil(t, await(t, a.Recv(bytesOf(got, tag), peer)))
							assert.True(t, bytes.Equal(pattern(len(got), i), got))
						}
					})
				}
			}
		}
		wg.Wait()
	})
}

// A sender that gives up by itself while its message moves leaves the receiver as if it had never sent.
func TestSenderEndsAtRandom(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		for i := range 20 {
			n := 3*readMost + i
			first, second, got := pattern(n, i), pattern(n, i+1), make([]byte, n)
			s, r := a.Send(bytesOf(first, 0), 1), b.Recv(bytesOf(got, 0), Any)
			go s.expire(call.NewFault(call.Timeout, 1, ""))
			if await(t, s) == nil {
				require.Nil(t, await(t, r))
				require.True(t, bytes.Equal(first, got), i)
				continue
			}
			again := a.Send(bytesOf(second, 0), 1)
			require.Nil(t, await(t, r))
			if bytes.Equal(second, got) {
				require.Nil(t, await(t, again))
			} else { // it was all there as the sender gave up
				require.True(t, bytes.Equal(first, got), i)
				require.Nil(t, await(t, b.Recv(bytesOf(got, 0), 0)))
			}
		}
		require.Empty(t, a.office.line(0, 1).left())
	})
}

// left are the messages that the line still knows, once those that are on their way are settled.
func (l *line) left() (n []uint64) {
	for range 1000 {
		l.mu.Lock()
		n = n[:0]
		for seq := range l.out {
			n = append(n, seq)
		}
		l.mu.Unlock()
		if len(n) == 0 {
			return nil
		}
		time.Sleep(time.Millisecond)
	}
	return n
}

// Whatever is given up while it moves, what has arrived is right, and nothing stays.
func TestCancelsAtRandom(t *testing.T) {
	inTowns(t, func(t *testing.T, w *town) {
		a, b := w.two()
		for i := range 20 {
			n := sizes[rand.N(len(sizes))]
			mem, got := pattern(n, i), make([]byte, n)
			s, r := a.Send(bytesOf(mem, int64(i)), 1), b.Recv(bytesOf(got, int64(i)), Any)
			if i%2 == 0 {
				go s.Cancel()
			} else {
				go r.Cancel()
			}
			if i%2 == 0 {
				if why := await(t, s); why != nil {
					require.Equal(t, call.Canceled, why.Code)
					r.Cancel()
					require.Equal(t, call.Canceled, await(t, r).Code)
				}
			} else if why := await(t, r); why != nil {
				require.Equal(t, call.Canceled, why.Code)
				s.Cancel()
				await(t, s)
			}
			if await(t, r) == nil {
				require.True(t, bytes.Equal(pattern(n, i), got), fmt.Sprint(i, n))
			}
		}
	})
}
