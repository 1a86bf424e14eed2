package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// briefLimit is how long what nobody answers is waited for.
const briefLimit = 20 * time.Millisecond

// failing are the ways in which a queued call of rank 0 fails: what rank 1 does, or leaves.
var failing = []struct {
	name string
	code ccl.Code
	by   func(t *testing.T, all [2]*ccl.Comm)
}{
	{"killed", ccl.ErrRankLost, func(_ *testing.T, all [2]*ccl.Comm) { ccl.Die(all[1]) }},
	{"late", ccl.ErrTimeout, nil}, // within briefLimit
	{"closes", ccl.ErrClosed, func(_ *testing.T, all [2]*ccl.Comm) { all[1].Close() }},
	{"aborts", ccl.ErrAborted, func(_ *testing.T, all [2]*ccl.Comm) { all[1].Abort(errors.New("enough")) }},
	{"cancels", ccl.ErrCanceled, func(t *testing.T, all [2]*ccl.Comm) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = ccl.Barrier(ctx, all[1])
	}},
	{"differs", ccl.ErrMismatch, func(t *testing.T, all [2]*ccl.Comm) { _ = ccl.Broadcast(t.Context(), all[1], []int{1}, 0) }},
}

// tellings are the ways in which a program is told that a queued call has failed.
var tellings = []struct {
	name string
	tell func(t *testing.T, c *ccl.Comm, w ccl.Work) error
}{
	{"nobody", nil},
	{"Wait", func(t *testing.T, _ *ccl.Comm, w ccl.Work) error { return w.Wait(t.Context()) }},
	{"Test", func(t *testing.T, _ *ccl.Comm, w ccl.Work) (err error) {
		until(t, "the call goes on", func() (done bool) { done, err = w.Test(); return done })
		return err
	}},
	{"OnDone", func(t *testing.T, _ *ccl.Comm, w ccl.Work) error { return told(t, w) }},
	{"a call", func(t *testing.T, c *ccl.Comm, _ ccl.Work) error { return ccl.Barrier(t.Context(), c) }},
	{"a call on Now", func(t *testing.T, c *ccl.Comm, _ ccl.Work) error { return c.On(ccl.Now).Barrier().Wait(t.Context()) }},
	{"Split", func(t *testing.T, c *ccl.Comm, _ ccl.Work) error { _, err := c.Split(t.Context(), 0, 0); return err }},
	{"Do", func(t *testing.T, c *ccl.Comm, _ ccl.Work) error {
		return c.On(nil).Do(func() error { return nil }).Wait(t.Context())
	}},
}

// lastWords are what may end a Comm or its stream, and so must say what nobody has said.
var lastWords = []struct {
	name string
	end  func(c *ccl.Comm, s *ccl.HostStream) error
}{
	{"Close", func(c *ccl.Comm, _ *ccl.HostStream) error { return c.Close() }},
	{"Finish", func(c *ccl.Comm, _ *ccl.HostStream) (err error) { c.Finish(&err); return err }},
	{"HostStream.Close", func(_ *ccl.Comm, s *ccl.HostStream) error { return s.Close() }},
}

// splitOf is a Comm of Split of both ranks.
func splitOf(t *testing.T, all [2]*ccl.Comm) (child [2]*ccl.Comm) {
	var wg sync.WaitGroup
	for r, c := range all {
		wg.Go(func() {
			var err error
			child[r], err = c.Split(t.Context(), 0, 0)
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	t.Cleanup(func() { child[0].Close(); child[1].Close() })
	return child
}

// Whichever way a queued call fails, the program is told once: by whatever it asks, or else by the end of the Comm or the stream.
func TestEveryFailureIsTold(t *testing.T) {
	c := newSideBySide(t)
	for _, f := range failing {
		for _, by := range tellings {
			for _, last := range lastWords {
				for _, split := range []bool{false, true} {
					c.run(fmt.Sprintf("%s, told by %s, then %s, split %v", f.name, by.name, last.name, split), func(t *testing.T) {
						all := pair(t, nil)
						if split {
							all = splitOf(t, all)
						}
						s := ccl.NewHostStream()
						q := all[0].On(s)
						if by.name == "Do" { // whose function does not run, since the call before it has failed
							q = all[0].On(nil)
						}
						if f.by == nil {
							q = q.Within(briefLimit)
						}
						w := ask(q, []int{1})
						if f.by != nil {
							go f.by(t, all)
						}
						if by.tell != nil {
							wants(t, by.tell(t, all[0], w), f.code)
							assert.NoError(t, last.end(all[0], s), "it was told before")
						} else {
							e := wants(t, last.end(all[0], s), f.code)
							assert.Equal(t, "AllReduce", e.Op)
						}
						assert.NoError(t, s.Close())
						assert.NoError(t, all[0].Close(), "it was told before")
						wants(t, w.Wait(t.Context()), f.code) // for whoever asks
					})
				}
			}
		}
	}
	c.Wait()
}

// A rejected call fails its Comm: the end tells of it where nobody has looked at the Work.
func TestRejectionIsToldOnce(t *testing.T) {
	for _, last := range lastWords[:2] {
		for _, waits := range []bool{false, true} {
			for _, s := range []ccl.Stream{nil, ccl.Now, ccl.NewHostStream()} {
				t.Run(fmt.Sprintf("%s %v %T", last.name, waits, s), func(t *testing.T) {
					all := pair(t, nil)
					w := all[0].On(s).Broadcast(ccl.BufOf([]int{1}), 7)
					if waits {
						wants(t, w.Wait(t.Context()), ccl.ErrArgument)
						assert.NoError(t, last.end(all[0], nil))
						return
					}
					err := last.end(all[0], nil)
					wants(t, err, ccl.ErrMismatch)
					assert.ErrorContains(t, err, "root is 7")
				})
			}
		}
	}
}

// What Finish itself has told the other ranks is not joined to the function's error.
func TestFinishDoesNotRepeatItsAbort(t *testing.T) {
	all := pair(t, nil)
	why := errors.New("no such file")
	err := why
	ask(all[0].On(nil), []int{1})
	all[0].Finish(&err)
	assert.Same(t, why, err)
}

// What nobody was given is joined to the function's error, though that is of the same Code, or has aborted the Comm.
func TestFinishJoinsWhatIsAlike(t *testing.T) {
	for _, tc := range []struct {
		name string
		fail func(all [2]*ccl.Comm) error // the function's error, on rank 0
		want string                       // what else has failed
	}{
		{"functions", func(all [2]*ccl.Comm) error {
			q := all[0].On(nil)
			w := q.Do(func() error { return errors.New("the first") })
			q.Do(func() error { return errors.New("the second") })
			return w.Wait(t.Context())
		}, "Do: the second"},
		{"messages", func(all [2]*ccl.Comm) error {
			all[1].Close()
			l := ccl.LinkTo(all[0], 1, 0)
			l.Send(ccl.BufOf([]int{1}))
			return l.Send(ccl.BufOf([]int{2})).Wait(t.Context())
		}, "Send: rank 1 has closed the Comm"},
		{"a queued call and a function", func(all [2]*ccl.Comm) error {
			ask(all[0].On(ccl.NewHostStream()), []int{1})
			all[0].On(nil).Do(func() error { return errors.New("the second") })
			return errors.New("no such file")
		}, "Do: the second"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := pair(t, nil)
			first := tc.fail(all)
			err := first
			all[0].Finish(&err)
			more, joined := strings.CutPrefix(err.Error(), first.Error()+"\n")
			assert.True(t, joined, "%v", err)
			assert.Contains(t, more, tc.want)
		})
	}
}

// A call on Now that fails, whose Work nobody looks at, is one that has failed like any other.
func TestNowIsTold(t *testing.T) {
	all := pair(t, nil)
	all[0].On(ccl.Now).Within(briefLimit).Barrier()
	wants(t, all[0].Close(), ccl.ErrTimeout)
	all = pair(t, nil)
	wants(t, all[0].On(ccl.Now).Within(briefLimit).Barrier().Wait(t.Context()), ccl.ErrTimeout)
	assert.NoError(t, all[0].Close())
}

// Where no call was under way, nothing that the program has asked for has failed, and the end is well, though a rank was lost or
// has aborted the Comm.
func TestCloseOfAnIdleComm(t *testing.T) {
	for _, f := range failing[:4] {
		all := pair(t, nil)
		works := []ccl.Work{ask(all[0].On(nil), []int{1}), ask(all[1].On(nil), []int{1})}
		for _, w := range works {
			require.NoError(t, w.Wait(t.Context()))
		}
		if f.by != nil {
			f.by(t, all)
		}
		if f.code == ccl.ErrAborted {
			<-all[0].Done()
		}
		assert.NoError(t, all[0].Close(), f.name)
	}
}

// The Comm before a Shrink, and before a Replace, is closed behind it, and tells what nobody was told.
func TestOldCommTells(t *testing.T) {
	t.Run("Shrink", func(t *testing.T) {
		all := pair(t, nil)
		ask(all[0].On(nil), []int{1})
		ccl.Die(all[1])
		next, err := all[0].Shrink(t.Context())
		require.NoError(t, err)
		wants(t, all[0].Close(), ccl.ErrRankLost)
		assert.NoError(t, next.Close())
	})
	t.Run("Replace", func(t *testing.T) {
		var all [3]*ccl.Comm
		var ranks, spare sync.WaitGroup
		for r, b := range boot.Local(3) {
			wait := &ranks
			if r == 2 {
				wait = &spare
			}
			wait.Go(func() {
				var err error
				all[r], err = ccl.NewComm(t.Context(), b, &ccl.Options{Spares: 1})
				assert.NoError(t, err)
			})
		}
		ranks.Wait()
		ask(all[0].On(nil), []int{1})
		ccl.Die(all[1])
		next, err := all[0].Replace(t.Context())
		require.NoError(t, err)
		spare.Wait()
		wants(t, all[0].Close(), ccl.ErrRankLost)
		assert.NoError(t, next.Close())
		assert.NoError(t, all[2].Close())
	})
}

// Functions of Do that fail are told once, by their Work, or else by the end of their stream: of a Comm's own, by that of the Comm.
func TestFailedFunctionIsTold(t *testing.T) {
	why := errors.New("the disk is full")
	fails := func() error { return why }
	s := ccl.NewHostStream()
	s.Do(fails)
	assert.ErrorIs(t, s.Close(), why)
	assert.NoError(t, s.Close(), "it was told before")

	s = ccl.NewHostStream()
	assert.ErrorIs(t, s.Do(fails).Wait(t.Context()), why)
	assert.ErrorIs(t, told(t, s.Do(fails)), why)
	assert.NoError(t, s.Close())

	all := pair(t, nil)
	all[0].On(nil).Do(fails)
	another := errors.New("no such file")
	all[0].On(nil).Do(func() error { return another })
	err := all[0].Close()
	assert.ErrorIs(t, err, why)
	assert.ErrorIs(t, err, another)
	assert.Equal(t, "ccl: Do: the disk is full; and Do: no such file", err.Error())
}

// messages are the ways in which a message of rank 0 fails, each with Comms of its own.
var messages = []struct {
	name string
	code ccl.Code
	send func(t *testing.T, all [2]*ccl.Comm) ccl.Message
}{
	{"late", ccl.ErrTimeout, func(t *testing.T, all [2]*ccl.Comm) ccl.Message {
		return ccl.LinkTo(all[0], 1, 0).Within(briefLimit).Send(ccl.BufOf(make([]int, 1<<16)))
	}},
	{"differs", ccl.ErrMismatch, func(t *testing.T, all [2]*ccl.Comm) ccl.Message {
		ccl.LinkTo(all[1], 0, 0).Send(ccl.BufOf(make([]int8, 3)))
		return ccl.LinkTo(all[0], 1, 0).Recv(ccl.BufOf([]int{1}))
	}},
	{"closes", ccl.ErrClosed, func(t *testing.T, all [2]*ccl.Comm) ccl.Message {
		m := ccl.LinkTo(all[0], 1, 0).Recv(ccl.BufOf([]int{1}))
		all[1].Close()
		return m
	}},
	{"aborts", ccl.ErrAborted, func(t *testing.T, all [2]*ccl.Comm) ccl.Message {
		m := ccl.LinkTo(all[0], 1, 0).Recv(ccl.BufOf([]int{1}))
		all[1].Abort(errors.New("enough"))
		return m
	}},
	{"killed", ccl.ErrRankLost, func(t *testing.T, all [2]*ccl.Comm) ccl.Message {
		m := ccl.LinkTo(all[0], 1, 0).Send(ccl.BufOf(make([]int, 1<<16)))
		ccl.Die(all[1])
		return m
	}},
}

// ended returns once a message has ended, whose error is not looked at.
func ended(t *testing.T, m ccl.Message) {
	until(t, "the message goes on", func() bool { return ccl.HasEnded(m) })
}

// A message that fails is told once, too, by its own or, where nobody asks it, by the end.
func TestEveryFailedMessageIsTold(t *testing.T) {
	c := newSideBySide(t)
	for _, f := range messages {
		for name, tell := range map[string]func(t *testing.T, m ccl.Message) error{
			"nobody": nil,
			"Wait":   func(t *testing.T, m ccl.Message) error { return m.Wait(t.Context()) },
			"Test":   func(_ *testing.T, m ccl.Message) error { _, err := m.Test(); return err },
			"OnDone": func(_ *testing.T, m ccl.Message) (err error) {
				ch := make(chan error, 1)
				m.OnDone(func(err error) { ch <- err })
				return <-ch
			},
		} {
			for _, last := range lastWords[:2] {
				c.run(fmt.Sprintf("%s, told by %s, then %s", f.name, name, last.name), func(t *testing.T) {
					all := pair(t, nil)
					m := f.send(t, all)
					ended(t, m)
					if tell == nil {
						wants(t, last.end(all[0], nil), f.code)
						return
					}
					wants(t, tell(t, m), f.code)
					assert.NoError(t, last.end(all[0], nil), "it was told before")
				})
			}
		}
	}
	c.Wait()
}

// Of several messages the end tells of those that nobody has asked. What it cuts off itself is lost if it was sent; a receive has
// lost nothing, nor has a message that the program has given up.
func TestCloseTellsOfMessages(t *testing.T) {
	large := ccl.BufOf(make([]int, 1<<16))
	all := pair(t, nil)
	var late []ccl.Message
	for tag := range 3 {
		late = append(late, ccl.LinkTo(all[0], 1, tag).Within(briefLimit).Send(large))
	}
	for _, m := range late {
		ended(t, m)
	}
	wants(t, late[1].Wait(t.Context()), ccl.ErrTimeout)
	err := all[0].Close()
	wants(t, err, ccl.ErrTimeout)
	assert.Regexp(t, `^ccl: rank 0: Send: timed out at rank 1: it has not received the message within 20ms; and Send: timed out at rank 1: it has not received the message within 20ms$`, err.Error())

	all = pair(t, nil)
	ccl.LinkTo(all[0], 1, 0).Send(large)
	wants(t, all[0].Close(), ccl.ErrClosed)

	all = pair(t, nil)
	ccl.LinkTo(all[0], 1, 0).Recv(large)
	ccl.LinkTo(all[0], 1, 1).Send(large).Cancel()
	ccl.LinkTo(all[0], 1, 2).Send(ccl.BufOf([]int{1})) // which the other rank may still receive
	assert.NoError(t, all[0].Close())
}
