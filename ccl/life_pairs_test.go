package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// sideBySide runs many tests that mostly wait side by side, whatever -parallel says.
type sideBySide struct {
	sync.WaitGroup
	t    *testing.T
	room chan struct{}
}

func newSideBySide(t *testing.T) *sideBySide { return &sideBySide{t: t, room: make(chan struct{}, 40)} }

func (c *sideBySide) run(name string, f func(t *testing.T)) {
	c.room <- struct{}{}
	c.Go(func() {
		defer func() { <-c.room }()
		c.t.Run(name, f)
	})
}

// queuedFirst are what a Comm may have queued when a use begins. The second function lets go what it holds.
var queuedFirst = []struct {
	name  string
	issue func(c *ccl.Comm) (w ccl.Work, release func())
}{
	{"a queued call", func(c *ccl.Comm) (ccl.Work, func()) { return c.On(nil).Barrier(), func() {} }},
	{"a group", func(c *ccl.Comm) (ccl.Work, func()) {
		return c.On(nil).Group(func(g ccl.Queue) error {
			g.Send(ccl.BufOf([]int{1}), 1)
			g.Recv(ccl.BufOf(make([]int, 1)), 1)
			return nil
		}), func() {}
	}},
	{"a call behind a busy stream", func(c *ccl.Comm) (ccl.Work, func()) {
		gate, s := make(chan struct{}), ccl.NewHostStream()
		s.Do(func() error { <-gate; return nil })
		return c.On(s).Barrier(), func() { close(gate) }
	}},
}

// Two uses at once: a queued call is under way, or about to be, when the goroutine that uses the Comm begins something
// else. Whatever ends the Comm ends both.
func TestEveryUseBehindAQueueEnds(t *testing.T) {
	c := newSideBySide(t)
	for _, q := range queuedFirst {
		for _, u := range users {
			for i, e := range enders {
				switch {
				case testing.Short() && i%4 != 0:
					continue
				case u.name == "Shrink" && e.fails, u.idle && e.name == "Close of the other": // see TestEveryUseEnds
					continue
				case e.name == "Close of the other" && q.name == "a call behind a busy stream": // nothing of it has begun
					continue
				}
				c.run(q.name+", "+u.name+" and "+e.name, func(t *testing.T) {
					all := closing(t, e.closes)
					w, release := q.issue(all[0])
					defer release()
					over := e.begin(all)
					ends(t, u.name, func() { e.wants(t, u.use(t.Context(), all[0])) })
					ends(t, "Wait", func() { e.wants(t, w.Wait(t.Context())) })
					ends(t, e.name, func() { <-over })
					ends(t, "Close", func() { all[0].Close() })
				})
			}
		}
	}
	c.Wait()
}

// Two uses at once: of a Comm and of one that was split from it, each on its goroutine. Each hears of the end of its own.
func TestTwoCommsInUseEnd(t *testing.T) {
	c, at := newSideBySide(t), 0
	for _, u := range users {
		for _, v := range users {
			for i, e := range enders {
				if at++; testing.Short() && at%11 != 0 || i != 0 && e.name != "Abort" {
					continue
				}
				if e.fails && (u.name == "Shrink" || v.name == "Shrink") {
					continue
				}
				c.run(u.name+", "+v.name+" and "+e.name, func(t *testing.T) {
					all := closing(t, e.closes)
					child := splitOf(t, all)
					var wg sync.WaitGroup
					over, childOver := e.begin(all), e.begin(child)
					wg.Go(func() {
						ends(t, v.name, func() { e.wants(t, v.use(t.Context(), child[0])) })
					})
					ends(t, u.name, func() { e.wants(t, u.use(t.Context(), all[0])) })
					wg.Wait()
					ends(t, e.name, func() { <-over; <-childOver })
					for _, c := range append(child[:], all[:]...) {
						ends(t, "Close", func() { c.Close() })
					}
				})
			}
		}
	}
	c.Wait()
}

// closing is a pair of short PeerTimeout; with closes, OnFailure closes rank 0's Comm.
func closing(t testing.TB, closes bool) [2]*ccl.Comm {
	var first atomic.Pointer[ccl.Comm]
	made := make(chan struct{})
	all := pair(t, func(rank int) *ccl.Options {
		o := &ccl.Options{PeerTimeout: time.Second}
		if rank == 0 && closes {
			o.OnFailure = func(*ccl.Error) { <-made; first.Load().Close() }
		}
		return o
	})
	first.Store(all[0])
	close(made)
	return all
}

// NewComm ends, too, whatever the other rank does while it is under way, or as soon as that has its own Comm.
func TestNewCommEnds(t *testing.T) {
	type end struct {
		name  string
		other func(b *boot.Boot) // of rank 1
		here  func(b *boot.Boot, cancel context.CancelFunc)
		codes []ccl.Code
		made  bool // NewComm may return a Comm; then a call on it has one of the codes
	}
	join := func(then func(c *ccl.Comm)) func(b *boot.Boot) {
		return func(b *boot.Boot) {
			c, err := ccl.NewComm(context.Background(), b, nil)
			if err == nil {
				then(c)
				c.Close()
			}
		}
	}
	boots := []ccl.Code{ccl.ErrClosed, ccl.ErrRankLost, ccl.ErrCanceled, ccl.ErrBackend}
	for _, hosts := range [][]string{{"a", "a"}, {"a", "b"}} {
		for _, e := range []end{
			{"its context ends", func(*boot.Boot) {}, func(_ *boot.Boot, cancel context.CancelFunc) { cancel() }, []ccl.Code{ccl.ErrCanceled}, false},
			{"its Bootstrap is closed", func(*boot.Boot) {}, func(b *boot.Boot, _ context.CancelFunc) { b.Close() }, boots, false},
			{"the other's Bootstrap is closed", func(b *boot.Boot) { b.Close() }, nil, boots, false},
			{"its context ends, anywhere in NewComm", join(func(*ccl.Comm) {}), func(_ *boot.Boot, cancel context.CancelFunc) { cancel() }, append(boots, ccl.ErrTimeout), true},
			{"its Bootstrap is closed, anywhere in NewComm", join(func(*ccl.Comm) {}), func(b *boot.Boot, _ context.CancelFunc) { b.Close() }, boots, true},
			{"the other closes its Comm at once", join(func(*ccl.Comm) {}), nil, []ccl.Code{ccl.ErrClosed}, true},
			{"the other aborts at once", join(func(c *ccl.Comm) { c.Abort(errors.New("enough")) }), nil, []ccl.Code{ccl.ErrAborted}, true},
		} {
			for _, closes := range []bool{false, true} { // OnFailure closes the Comm
				name := e.name + ", on hosts " + hosts[0] + hosts[1]
				if closes {
					name += ", OnFailure closes"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					bs := boot.Local(2, hosts...)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					var made atomic.Pointer[ccl.Comm]
					returned, told := make(chan struct{}), make(chan struct{})
					o := &ccl.Options{}
					if closes {
						o.OnFailure = func(*ccl.Error) {
							defer close(told)
							<-returned // NewComm does not wait for it
							if c := made.Load(); c != nil {
								c.Close()
							}
						}
					}
					var beside sync.WaitGroup
					beside.Go(func() { e.other(bs[1]) })
					if e.here != nil {
						beside.Go(func() {
							time.Sleep(time.Duration(time.Now().UnixNano() % 3_000_000)) // anywhere in it
							e.here(bs[0], cancel)
						})
					}
					ends(t, "NewComm", func() {
						c, err := ccl.NewComm(ctx, bs[0], o)
						made.Store(c)
						close(returned)
						if err == nil && assert.True(t, e.made, "NewComm has succeeded") {
							err = ccl.Barrier(context.Background(), c)
							defer c.Close()
						}
						var got *ccl.Error
						if assert.ErrorAs(t, err, &got) && !(closes && got.Code == ccl.ErrClosed) {
							assert.Contains(t, e.codes, got.Code, "%v", err)
						}
						if closes && c != nil && c.Err() != nil {
							<-told
						}
					})
					bs[0].Close()
					bs[1].Close()
					ends(t, "the other", beside.Wait)
				})
			}
		}
	}
	until(t, "goroutines are left", func() bool { return runtime.NumGoroutine() < 1000 })
}
