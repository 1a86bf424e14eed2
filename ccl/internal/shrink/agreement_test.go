package shrink

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/ranktest"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/agree"
	"github.com/goccl/goccl/internal/algo"
)

// ranksOf are n ranks of this process on one host.
func ranksOf(t *testing.T, n int) []*Shrinker {
	t.Helper()
	return ranktest.Of(t, n, plane.PrivateHost(), plane.Options{}, func(m *plane.Member) *Shrinker {
		l, mem, c := new(links.Links), new(reach.Reach), new(Shrinker)
		mem.Init(m)
		l.Init(m, mem, new(call.Workspace))
		c.Init(m, l)
		return c
	})
}

// agreeing has the given ranks agree, with a context each.
func agreeing(t *testing.T, all []*Shrinker, ranks []int, ctx func(r int) context.Context) ([]*Agreement, []*call.Fault) {
	t.Helper()
	agreements, faults := make([]*Agreement, len(all)), make([]*call.Fault, len(all))
	var wg sync.WaitGroup
	for _, r := range ranks {
		wg.Go(func() { agreements[r], faults[r] = all[r].Agree(ctx(r)) })
	}
	wg.Wait()
	return agreements, faults
}

// Those that are alive agree on the same ranks and the same memory, which one of them has made; a rank that has closed the
// Comm is not among them. Each Shrink is an attempt of its own.
func TestAgree(t *testing.T) {
	for _, tc := range []struct {
		name   string
		ranks  []int
		closed []int
	}{
		{"all", []int{0, 1, 2}, nil},
		{"the last has closed", []int{0, 1}, []int{2}},
		{"the lead has closed", []int{1, 2}, []int{0}},
		{"one is left", []int{1}, []int{0, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := ranksOf(t, 3)
			for _, r := range tc.closed {
				all[r].rank.Share.Local.State(r).Store(region.StateClosed)
			}
			for attempt := uint32(1); attempt <= 2; attempt++ {
				agreements, faults := agreeing(t, all, tc.ranks, func(int) context.Context { return t.Context() })
				lead := agreements[tc.ranks[0]]
				for _, r := range tc.ranks {
					require.Nil(t, faults[r], "rank %d: %v", r, faults[r])
					a := agreements[r]
					require.Equal(t, attempt, a.Attempt)
					require.Equal(t, r, a.Rank)
					require.Len(t, a.Party.Ranks, len(tc.ranks))
					for i, got := range a.Party.Ranks {
						require.EqualValues(t, tc.ranks[i], got)
					}
					off, ok := a.Memory()
					require.True(t, ok, "rank %d", r)
					require.Equal(t, lead.made, off)
					require.Equal(t, r == tc.ranks[0], a.made != 0, "the first rank of a host makes its memory")
					require.Equal(t, uint64(attempt)<<1, all[r].rank.Share.Local.Agreed(r).Load())
				}
			}
		})
	}
}

// Where one gives up, all end without a Comm, each with a cause, and the memory that was made is given back.
func TestAgreeInVain(t *testing.T) {
	all := ranksOf(t, 3)
	ended, stop := context.WithCancel(t.Context())
	stop()
	_, faults := agreeing(t, all, []int{0, 1}, func(r int) context.Context { // rank 2 never comes
		if r == 0 {
			return ended
		}
		return t.Context()
	})
	for r := range 2 {
		require.NotNil(t, faults[r])
		assert.Equal(t, call.Canceled, faults[r].Code, "rank %d: %v", r, faults[r])
		assert.Equal(t, uint64(1)<<1|gaveUp, all[r].rank.Share.Local.Agreed(r).Load())
	}
}

// A fault of an agreement that another has given up names the rank that is missing; with none told, the one that gave up, unless that
// ran out of time.
func TestGiven(t *testing.T) {
	a := &Agreement{lines: make([]*line, 4)}
	for _, tc := range []struct {
		name    string
		n       notice
		missing []int
		want    call.Fault
	}{
		{"canceled", notice{says: agree.Notice{Ballot: 3}, code: call.Canceled}, nil, call.Fault{Code: call.Canceled, Peer: 2}},
		{"canceled, by no rank", notice{code: call.Canceled}, nil, call.Fault{Code: call.Canceled, Peer: 1}},
		{"by a rank that is none", notice{says: agree.Notice{Ballot: 9}, code: call.Canceled}, nil, call.Fault{Code: call.Canceled, Peer: 1}},
		{"out of time, as the lead says", notice{says: agree.Notice{Ballot: 1, Ranks: []int32{3, 2}}, code: call.Timeout}, nil, call.Fault{Code: call.Timeout, Peer: 3, Missing: []int{3, 2}}},
		{"out of time, as the lead hears", notice{says: agree.Notice{Ballot: 2, Ranks: []int32{0}}, code: call.Timeout}, []int{1, 3}, call.Fault{Code: call.Timeout, Peer: 3, Missing: []int{3}}},
		{"out of time, and nobody else is missing", notice{says: agree.Notice{Ballot: 1}, code: call.Timeout}, []int{1}, call.Fault{Code: call.Timeout, Peer: -1, Missing: []int{}}},
	} {
		got := a.given(tc.n, 1, tc.missing)
		tc.want.Err = got.Err
		assert.Equal(t, &tc.want, got, tc.name)
		assert.EqualError(t, got.Err, "rank 1 gave up", tc.name)
	}
}

// limit gives a's Comm that timeout.
func limit(a *Agreement, timeout time.Duration) {
	g := &a.c.rank.Group
	*g = group.New(g.ID(), group.Members{Stride: 1}, g.Topology(), g.Rank(), group.Agreed{Timeout: timeout})
	a.limit, _ = limited(context.Background(), timeout)
}

// The time of a Shrink is over when its Comm closes, its context ends, or the timeout has passed.
func TestExpired(t *testing.T) {
	ended, stop := context.WithCancel(t.Context())
	stop()
	for _, tc := range []struct {
		name   string
		change func(a *Agreement)
		ctx    context.Context
		code   call.Code
		text   string
	}{
		{"not yet", func(*Agreement) {}, t.Context(), 0, ""},
		{"no timeout", func(a *Agreement) { limit(a, 0) }, t.Context(), 0, ""},
		{"not so long", func(a *Agreement) { limit(a, time.Hour) }, t.Context(), 0, ""},
		{"the timeout", func(a *Agreement) {
			limit(a, time.Millisecond)
			<-a.limit.Done()
		}, t.Context(), call.Timeout, "not done after 1ms"},
		{"its context", func(*Agreement) {}, ended, call.Canceled, "context canceled"},
		{"its Comm closes", func(a *Agreement) { a.c.rank.Fate.Interrupt() }, ended, call.Closed, "code 11, rank 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ranksOf(t, 2)[0]
			a := &Agreement{c: c, Party: agree.New(0, 2, agree.Asks{}), limit: t.Context()}
			tc.change(a)
			f := a.expired(tc.ctx)
			if tc.code == 0 {
				require.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			assert.Equal(t, tc.code, f.Code)
			assert.EqualError(t, f, tc.text)
		})
	}
}

// Only the first rank of a host in a proposal makes memory for its part, and gives back what it made for an earlier one.
func TestMake(t *testing.T) {
	all := ranksOf(t, 3)
	a := &Agreement{c: all[1], Rank: 1}
	for _, tc := range []struct {
		ranks  []int32
		locals int // 0: this rank makes nothing
	}{{[]int32{1, 2}, 2}, {[]int32{0, 1, 2}, 0}, {[]int32{1}, 1}} {
		name := fmt.Sprint(tc.ranks)
		require.NoError(t, a.make(1<<32, tc.ranks), name)
		assert.Equal(t, tc.locals != 0, a.made != 0, name)
		assert.Equal(t, a.made, all[0].rank.Share.Local.Draft(1).Off, name)
		if tc.locals > 0 {
			assert.Equal(t, tc.locals, a.madeFor, name)
		}
	}
	a.drop()
	assert.Zero(t, a.made)
}

// Trouble with connections makes this rank one that is lost, as all others hear.
func TestTrouble(t *testing.T) {
	c := ranksOf(t, 2)[1]
	a := &Agreement{c: c, Rank: 1, lines: []*line{nil, {}}}
	require.Nil(t, a.trouble())
	why := errors.New("no descriptor is left")
	a.lines[1].via.trouble = why
	f := a.trouble()
	require.NotNil(t, f)
	assert.Equal(t, call.Backend, f.Code)
	assert.Equal(t, 1, f.Peer)
	assert.ErrorIs(t, f, why)
	assert.True(t, c.rank.Site.Job.IsLost(1))
}

// How often a rank wakes and looks does not depend on how long the others take. A member waits for its lead: for the proposal,
// the decision, and its end. The lead wakes at most once for each rank in each of the three phases, and looks at one rank then.
// Each ring may come late, and then wakes once more, in vain. So all ranks together do what grows with their number, not with
// its square.
func TestAgreeWakes(t *testing.T) {
	for _, n := range []int{4, 16, 64} {
		t.Run(fmt.Sprintf("%d ranks", n), func(t *testing.T) {
			all := ranksOf(t, n)
			ranks := make([]int, n)
			for r := range ranks {
				ranks[r] = r
			}
			for range 3 { // agreements of one Comm, each with lines of the first
				began := time.Now()
				agreements, faults := agreeing(t, all, ranks, func(int) context.Context { return t.Context() })
				late := int(time.Since(began)/lookEvery) + 1 // sleeps that may have ended by themselves
				for r, a := range agreements {
					require.Nil(t, faults[r], "rank %d: %v", r, faults[r])
					rings := 3
					if r == 0 {
						rings = 3 * (n - 1)
					}
					sleeps, looks, hears := 3*rings+late, 1+late, 9*rings+n+late*(n+4)
					w := a.waits
					assert.LessOrEqual(t, w.sleeps, sleeps, "rank %d sleeps", r)
					assert.LessOrEqual(t, w.looks, looks, "rank %d looks at all", r)
					assert.LessOrEqual(t, w.hears, hears, "rank %d looks at one", r)
				}
				t.Logf("the lead: %d sleeps, %d looks at all, %d at one; the last: %d, %d, %d", agreements[0].waits.sleeps, agreements[0].waits.looks,
					agreements[0].waits.hears, agreements[n-1].waits.sleeps, agreements[n-1].waits.looks, agreements[n-1].waits.hears)
			}
		})
	}
}

// A rank that sleeps in an agreement hears at once of what ends its wait: that a rank is lost, that one closes the Comm, that its
// context ends, that its own Comm closes. Nothing but a bell wakes it here: there is no monitor.
func TestAgreeIsWoken(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(all []*Shrinker, cancel func())
		want call.Code // of rank 1; 0: it agrees
	}{
		{"a rank is lost", func(all []*Shrinker, _ func()) { all[1].rank.Site.Lost(2, errors.New("on purpose")) }, 0},
		{"a rank closes the Comm", func(all []*Shrinker, _ func()) {
			all[2].rank.Share.Local.State(2).Store(region.StateClosed)
			all[2].rank.Ring(all[2].rank.Share.ClaimSleepers())
		}, 0},
		{"the context ends", func(_ []*Shrinker, cancel func()) { cancel() }, call.Canceled},
		{"its Comm closes", func(all []*Shrinker, _ func()) {
			all[1].rank.Fate.Interrupt()
			all[1].rank.WakeCall()
		}, call.Closed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := ranksOf(t, 3)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var wg sync.WaitGroup
			var agreements [2]*Agreement
			var faults [2]*call.Fault
			for r := range 2 {
				own := t.Context()
				if r == 1 {
					own = ctx
				}
				wg.Go(func() { agreements[r], faults[r] = all[r].Agree(own) })
			}
			for r := range 2 { // both wait for rank 2, which does not come, or for one that does
				require.Eventually(t, func() bool { return all[r].rank.Share.Local.Bell(r).Load() != 0 }, 10*time.Second, time.Millisecond)
			}
			tc.do(all, cancel)
			wg.Wait()
			if tc.want == 0 {
				for r, f := range faults {
					require.Nil(t, f, "%v", f)
					require.Equal(t, []int32{0, 1}, agreements[r].Party.Ranks)
				}
				return
			}
			require.NotNil(t, faults[1])
			require.Equal(t, tc.want, faults[1].Code)
			require.NotNil(t, faults[0], "rank 0 hears that rank 1 has given up")
		})
	}
}

// Ranks that stood still, and find all others gone, go on only as a majority of those that may live.
func TestIsLeftBehind(t *testing.T) {
	j := plane.EnterJob(t.Name(), 4*time.Second)
	t.Cleanup(j.Leave)
	j.World.Topo = algo.Blocks(4, 2)
	s := j.Site(2)
	s.Here.Mine, s.Here.Procs, s.Here.Host = 5, []int{4, 5}, plane.PrivateHost()
	m := new(plane.Member)
	m.Init(s, group.WorldID, group.Members{Stride: 1}, j.World.Topo, 5, region.New(0, shm.Aligned(region.Bytes(2)), 2), plane.Options{})
	leftBehind := func(left, ended []int32) bool {
		a := &Agreement{c: &Shrinker{rank: m}, Rank: 5, lines: make([]*line, 8), Party: &agree.Party{Ranks: left, Ended: ended}}
		return a.IsLeftBehind()
	}
	at := time.Now()
	j.Time.Lived.Lap(at)
	require.False(t, leftBehind([]int32{5}, nil), "it has not stood still")
	j.Time.Lived.Lap(at.Add(9 * time.Second))
	for _, tc := range []struct {
		left, ended []int32
		want        bool
	}{
		{[]int32{5}, nil, true},
		{[]int32{4, 5}, nil, true},
		{[]int32{5, 7}, nil, true},
		{[]int32{5}, []int32{0, 1, 2, 3, 6, 7}, false}, // rank 4 alone is not known, and on this host
		{[]int32{5}, []int32{0, 1, 2, 3, 6}, true},
		{[]int32{1, 2, 4, 5, 6}, nil, false},
		{[]int32{0, 1, 4, 5}, nil, false}, // half of them, with the lowest
		{[]int32{2, 3, 4, 5}, nil, true},
		{[]int32{0, 1, 2, 3, 5, 6, 7}, nil, false},
	} {
		require.Equal(t, tc.want, leftBehind(tc.left, tc.ended), "%v of 8 are left, %v have ended", tc.left, tc.ended)
	}
}
