package plane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
)

// A loss is certain where the end of the process was seen, and not where it may only be silent or out of reach. The Comm's
// failure says which.
func TestLossIsCertainOrSuspected(t *testing.T) {
	for _, tc := range []struct {
		why  error
		loss event.Loss
	}{
		{watch.ErrEnded, event.Certain},
		{fmt.Errorf("%w, or its host cannot be reached", watch.ErrEnded), event.Ended},
		{errors.New("its process has been silent for 5s"), event.Suspected},
		{errors.New("its host cannot be reached"), event.Suspected},
	} {
		t.Run(tc.why.Error(), func(t *testing.T) {
			c := ofTwo(t, 0, Options{})
			s, j := c.Site, c.Site.Job
			require.False(t, j.HasEnded(1))
			s.Lost(1, tc.why)
			assert.True(t, j.IsLost(1))
			assert.Equal(t, tc.loss == event.Certain, j.HasEnded(1))
			assert.False(t, j.HasEnded(0))
			f := c.Fate.Cause()
			require.NotNil(t, f)
			assert.Equal(t, call.RankLost, f.Code)
			assert.Equal(t, tc.loss == event.Certain, f.Certain)
			for _, e := range historyOf(j) {
				assert.Equal(t, tc.loss, e.Loss)
			}
		})
	}
}

// The end of a connection with another host is the end of the process there if its port is refused from then on. If somebody
// listens there still, the connection was cut.
func TestEndOfAConnectionIsAskedFor(t *testing.T) {
	for _, listens := range []bool{false, true} {
		t.Run(fmt.Sprintf("listens %v", listens), func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer l.Close()
			j := EnterJob(t.Name(), 0)
			defer j.Leave()
			j.World.Topo = algo.Blocks(2, 1)
			j.Net.Addrs = group.BookOf(j.World.Topo, netip.MustParseAddrPort(l.Addr().String()), netip.AddrPort{})
			s := j.Site(1)
			s.Here.Host, s.Here.Mine, s.Here.Procs = PrivateHost(), 1, []int{1}
			require.NoError(t, j.Listen("lo", netip.MustParseAddr("127.0.0.1"), auth.Secret{}, auth.Plain)) // it tries to connect anew
			a, b := auth.Pipe()
			c := &control.Conn{Stream: a, Host: 0, First: 0}
			s.Near.Conns = append(s.Near.Conns, c)
			if !listens {
				require.NoError(t, l.Close())
			}
			go func() {
				b.Write([]byte{control.FrameHead, 0, control.FrameBeat, control.FrameVersion}) // it was there
				b.Close()
			}()
			j.Life.Wg.Add(1)
			s.listenTo(c)
			lost := knownTo(j)
			require.Len(t, lost, 1)
			assert.EqualValues(t, 0, lost[0].Peer)
			assert.Equal(t, call.RankLost, call.Code(lost[0].Code))
			want := event.Certain
			if listens {
				want = event.Ended
			}
			assert.Equal(t, want, lost[0].Loss)
		})
	}
}

// goesOn has the process of s live for so long, and hear host 0 if hears.
func goesOn(s *Site, d time.Duration, hears bool) {
	for range d / tick {
		time.Sleep(tick)
		s.Job.Time.Lived.Lap(time.Now())
		if hears {
			s.Near.Hear(0)
		}
	}
}

// What a host says of the end of a process there makes it certain only where that cannot have gone on without this one before: while
// this one stood still, or on the other side of a partition.
func TestIsCertain(t *testing.T) {
	const peer, unbroken = 4 * time.Second, watch.LeastSilence
	for _, tc := range []struct {
		name string
		peer time.Duration
		do   func(s *Site, lives func(d time.Duration, hears bool), stands func())
		want bool
	}{
		{"it was never heard, nor was there any trouble", peer, func(*Site, func(time.Duration, bool), func()) {}, true},
		{"it is heard", peer, func(_ *Site, lives func(time.Duration, bool), _ func()) { lives(2*peer, true) }, true},
		{"it is silent, as nobody else", peer, func(_ *Site, lives func(time.Duration, bool), _ func()) {
			lives(peer, true)
			lives(peer, false)
		}, true},
		{"another is suspected", peer, func(s *Site, _ func(time.Duration, bool), _ func()) { s.Job.World.Lose(2, false) }, false},
		{"another has ended", peer, func(s *Site, _ func(time.Duration, bool), _ func()) { s.Job.World.Lose(2, true) }, true},
		{"another is suspected, and it is heard", peer, func(s *Site, lives func(time.Duration, bool), _ func()) {
			s.Job.World.Lose(2, false)
			lives(peer, true)
			lives(peer/2, false)
		}, true},
		{"another is suspected, and it was heard", peer, func(s *Site, lives func(time.Duration, bool), _ func()) {
			s.Job.World.Lose(2, false)
			lives(peer, true)
			lives(peer/2+BeatEvery, false)
		}, false},
		{"this one stood still", peer, func(_ *Site, lives func(time.Duration, bool), stands func()) {
			lives(peer, true)
			stands()
		}, false},
		{"this one stood still, and reads what came meanwhile", peer, func(_ *Site, lives func(time.Duration, bool), stands func()) {
			lives(peer, true)
			stands()
			lives(unbroken/2, true)
		}, false},
		{"this one stood still, and reads what came late", peer, func(_ *Site, lives func(time.Duration, bool), stands func()) {
			lives(peer, true)
			stands()
			lives(2*unbroken, false)
			lives(unbroken/2, true)
		}, false},
		{"this one stood still, and hears it again", peer, func(_ *Site, lives func(time.Duration, bool), stands func()) {
			stands()
			lives(2*unbroken, true)
		}, true},
		{"this one stood still, and hears it again, seldom, as both are idle", 8 * time.Second, func(s *Site, lives func(time.Duration, bool), stands func()) {
			stands()
			for range 4 {
				lives(time.Second+tick, false)
				s.Near.Hear(0)
			}
		}, true},
		{"nobody is given up for silence", -1, func(s *Site, _ func(time.Duration, bool), stands func()) {
			s.Job.World.Lose(2, false)
			stands()
		}, true},
		{"this one is given up", peer, func(s *Site, lives func(time.Duration, bool), _ func()) {
			lives(peer, true)
			s.Job.World.Lose(1, false)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := EnterJob(t.Name(), tc.peer)
				defer j.Leave()
				j.World.Topo = algo.Blocks(3, 1)
				s := j.Site(1)
				s.Here.Mine = 1
				j.Time.Lived.Lap(time.Now())
				tc.do(s, func(d time.Duration, hears bool) { goesOn(s, d, hears) }, func() { time.Sleep(time.Hour) })
				require.Equal(t, tc.want, IsCertain(s, 0))
				why := endOf(s, 0, true)
				require.Equal(t, tc.want, why == watch.ErrEnded)
				require.ErrorIs(t, why, watch.ErrEnded)
				require.LessOrEqual(t, len(why.Error()), len(event.Event{}.Text))
				require.NotEqual(t, watch.ErrEnded, endOf(s, 0, false))
			})
		})
	}
}

// A process that comes back after it stood still, and finds others gone, may be the one that was given up: not where they are heard
// again first, nor where their end is certain, nor long after, and not by the ranks of its own host.
func TestMayBeOut(t *testing.T) {
	const peer = 4 * time.Second
	loses := func(s *Site, w int, loss event.Loss) {
		e := event.New(0, call.RankLost, w, -1, 0, nil)
		e.Loss = loss
		s.Job.Order.Lock()
		defer s.Job.Order.Unlock()
		s.believe(&e)
	}
	for _, tc := range []struct {
		name string
		do   func(s *Site, lives func(d time.Duration, hears bool), stands func())
		want bool
	}{
		{"it never stood still", func(s *Site, lives func(time.Duration, bool), _ func()) { lives(peer, false); loses(s, 0, event.Ended) }, false},
		{"it comes back to one that seems to have left", func(_ *Site, _ func(time.Duration, bool), stands func()) { stands() }, true},
		{"and to one that is lost", func(s *Site, _ func(time.Duration, bool), stands func()) { stands(); loses(s, 0, event.Ended) }, true},
		{"which it finds late", func(s *Site, lives func(time.Duration, bool), stands func()) {
			stands()
			lives(2*peer, false)
			loses(s, 0, event.Suspected)
			lives(10*peer, false)
		}, true},
		{"one that has certainly ended", func(s *Site, _ func(time.Duration, bool), stands func()) { stands(); loses(s, 0, event.Certain) }, false},
		{"one that was lost before", func(s *Site, _ func(time.Duration, bool), stands func()) {
			loses(s, 0, event.Suspected)
			stands()
			loses(s, 0, event.Suspected)
		}, false},
		{"one that was heard again", func(s *Site, lives func(time.Duration, bool), stands func()) {
			stands()
			lives(peer, true)
			loses(s, 0, event.Suspected)
		}, false},
		{"one that is lost long after", func(s *Site, lives func(time.Duration, bool), stands func()) {
			stands()
			lives(4*peer+time.Second, false)
			loses(s, 0, event.Suspected)
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := EnterJob(t.Name(), peer)
				defer j.Leave()
				j.World.Topo = algo.Placed([]int{0, 1, 1})
				s := j.Site(1)
				s.Here.Mine, s.Here.Procs = 1, []int{1, 2}
				j.Time.Lived.Lap(time.Now())
				tc.do(s, func(d time.Duration, hears bool) { goesOn(s, d, hears) }, func() {
					time.Sleep(time.Hour)
					j.Time.Lived.Lap(time.Now())
				})
				require.Equal(t, tc.want, s.Near.MayBeOut(0))
				require.False(t, s.Near.MayBeOut(2), "it is on this host")
				require.False(t, s.Near.MayBeOut(-1))
			})
		})
	}
}
