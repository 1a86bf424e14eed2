package plane

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/op"
)

// Every wait notices what makes it vain: by then it has looked a few times, and has not slept.
func TestPauseEnds(t *testing.T) {
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		name   string
		before func(all []*Member)
		ctx    context.Context
		peer   int
		want   call.Fault
		laps   int // 0: it returns at once
	}{
		{"the Comm has failed", func(all []*Member) { all[0].Fate.cause.Store(&call.Fault{Code: call.RankLost, Peer: 2}) }, t.Context(), 1, call.Fault{Code: call.RankLost, Peer: 2}, 0},
		{"another rank fails the Comm", func(all []*Member) { all[2].Fail(&call.Fault{Code: call.Aborted, Peer: 2}) }, t.Context(), 1, call.Fault{Code: call.Aborted, Peer: 2}, 0},
		{"the context has ended", func([]*Member) {}, canceled, 1, call.Fault{Code: call.Canceled, Peer: 0, Missing: []int{1, 2}, Own: true}, lapsAwake - 1},
		{"one has come", func(all []*Member) { enter(all[1], call.Barrier) }, canceled, 1, call.Fault{Code: call.Canceled, Peer: 0, Missing: []int{2}, Own: true}, lapsAwake - 1},
		{"the time is over", func(all []*Member) {
			all[0].Site.Job.Time.Coarse.Stamp(all[0].Site.Job.Time.Coarse.Born.Add(time.Minute+2), false)
		}, t.Context(), 1, call.Fault{Code: call.Timeout, Peer: 1, Missing: []int{1, 2}, Own: true}, lapsAwake - 1},
		{"the peer has closed the Comm", func(all []*Member) { all[0].Share.Local.State(1).Store(region.StateClosed) }, t.Context(), 1, call.Fault{Code: call.Closed, Peer: 1}, lapsAwake},
		{"any rank has", func(all []*Member) { all[0].Share.Local.State(2).Store(region.StateClosed) }, t.Context(), -1, call.Fault{Code: call.Closed, Peer: 2}, lapsAwake},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := ranks(t, 3, Options{Agreed: group.Agreed{Timeout: time.Minute}})
			c := all[0]
			enter(c, call.Barrier)
			tc.before(all)
			var w Waiter
			laps := 0
			f := c.Pause(tc.ctx, &w, tc.peer)
			for ; f == nil; laps++ {
				f = c.Pause(tc.ctx, &w, tc.peer)
			}
			require.Equal(t, tc.laps, laps)
			got := *f
			got.Err = nil
			require.Equal(t, tc.want, got)
			require.Same(t, f, c.Fate.cause.Load())
			require.Zero(t, w.Nap)
		})
	}
}

// A rank that waits finds a rank that is in another call of the same number.
func TestPauseFindsOtherCalls(t *testing.T) {
	all := ranks(t, 2, Options{})
	enter(all[0], call.Barrier)
	enter(all[1], call.AllReduce)
	var w Waiter
	var f *call.Fault
	for f == nil {
		f = all[0].Pause(t.Context(), &w, 1)
	}
	require.Equal(t, []any{call.Mismatch, 1, call.Barrier, call.AllReduce}, []any{f.Code, f.Peer, f.Mine.Kind, f.Theirs.Kind})
}

// A wait that lasts notes its call, sets the bell, and is rung by the rank that it waits for.
func TestPauseSleeps(t *testing.T) {
	slept := 0
	all := ranks(t, 3, Options{Hooks: Hooks{OnSleep: func(*call.Call) { slept++ }}})
	c := all[0]
	enter(c, call.Barrier)
	c.Current.running = &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier, Seq: 1}}}
	w := Waiter{began: time.Now().Add(-time.Second)} // it has given way for long enough
	for c.Current.running != nil {
		require.Nil(t, c.Pause(t.Context(), &w, 2))
	}
	require.Equal(t, 1, slept)
	require.Equal(t, uint64(1<<32|3), c.Share.Local.Waits(0).Load())
	require.EqualValues(t, BellFrom+2, c.Share.Local.Bell(0).Load())
	require.EqualValues(t, 1, c.Share.Local.Sleepers().Load())
	s, _, _ := c.Standing.status(c.Site.Job.Clock())
	require.Equal(t, []any{status.Waits, int32(2)}, []any{s.Doing, s.Peer})

	all[1].Wake()
	require.Empty(t, c.Standing.Bell.rung, "it waits for another")
	all[2].Wake()
	require.Len(t, c.Standing.Bell.rung, 1)
	require.Nil(t, c.Pause(t.Context(), &w, 2), "it was rung, so it sleeps no more before it has looked")
	require.EqualValues(t, BellFrom+2, c.Share.Local.Bell(0).Load(), "it has set the bell anew")
	c.EndSleep()
	require.Zero(t, c.Share.Local.Waits(0).Load())
	require.Zero(t, c.Share.Local.Bell(0).Load())
	require.Zero(t, c.Share.Local.Sleepers().Load())
}

// arrivals are what a wait is for that notes how it is awaited.
type arrivals struct {
	takes  time.Duration // negative: it cannot be awaited
	times  int
	least  time.Duration
	parked int32
}

func (a *arrivals) Moved() Moved { return Moved{Done: 3, Of: 8} }

func (a *arrivals) Await(d time.Duration) bool {
	if a.times++; a.times == 1 || d < a.least {
		a.least = d
	}
	a.parked = parked.Load()
	time.Sleep(a.takes)
	return a.takes >= 0
}

// A wait for other hosts that lasts sleeps until something arrives, if it can, and looks each time for what else may end it.
func TestPauseAwaitsArrivals(t *testing.T) {
	for _, takes := range []time.Duration{time.Millisecond, -1} {
		t.Run(takes.String(), func(t *testing.T) {
			c := ranks(t, 2, Options{})[0]
			enter(c, call.Barrier)
			ctx, cancel := context.WithCancel(t.Context())
			a := arrivals{takes: takes}
			w := Waiter{Remote: true, Arrivals: &a, began: time.Now().Add(-time.Second)}
			for a.times < 20 {
				require.Nil(t, c.Pause(ctx, &w, 1))
			}
			require.Equal(t, arriveMax, a.least)
			if takes < 0 {
				require.GreaterOrEqual(t, w.naps, 20)
			}
			cancel()
			require.NotNil(t, c.Pause(ctx, &w, 1))
			require.Equal(t, 20, a.times)
		})
	}
}

// Where programs compute on the same cores, it sleeps after a few laps, in which it does not give way.
func TestPauseAwaitsSoonWhereYieldsAreLate(t *testing.T) {
	c := ranks(t, 2, Options{})[0]
	enter(c, call.Barrier)
	c.Share.Spins = spinsAlone
	c.Site.Job.Time.Yielding.Until.Store(int64(time.Since(c.Site.Job.Time.Coarse.Born) + time.Hour))
	c.Site.Job.Time.Yielding.others.Store(true)
	var a arrivals
	w := Waiter{Remote: true, Arrivals: &a}
	for range lapsRemote - 1 {
		require.Nil(t, c.Pause(t.Context(), &w, 1))
	}
	require.True(t, w.began.IsZero(), "it only looks")
	for a.times == 0 {
		w.began = time.Time{} // the wait is a short one so far
		require.Nil(t, c.Pause(t.Context(), &w, 1))
		require.False(t, w.began.IsZero())
		require.Less(t, w.laps, lapsMax, "other goroutines want the processor all the time")
	}
	require.Zero(t, w.naps)
}

// A sleep in the kernel counts as one that keeps a processor, and of several goroutines none takes the last. A wait that is
// ended again and again at once gives it up.
func TestAwait(t *testing.T) {
	a := arrivals{takes: 2 * NapMin}
	w := Waiter{Arrivals: &a}
	for range 2 * hastyMost {
		require.True(t, w.await(time.Second))
	}
	require.EqualValues(t, 1, a.parked)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, tc := range []struct {
		processors, others int
		want               bool
	}{{1, 0, true}, {1, 1, false}, {2, 0, true}, {2, 1, false}, {3, 1, true}, {3, 2, false}} {
		runtime.GOMAXPROCS(tc.processors)
		parked.Store(int32(tc.others))
		assert.Equal(t, tc.want, w.await(time.Second), "%+v", tc)
		assert.EqualValues(t, tc.others, parked.Load(), "%+v", tc)
	}
	parked.Store(0)

	// One that ended late is noted.
	require.True(t, w.await(time.Hour))
	require.Negative(t, w.late)
	require.True(t, w.await(a.takes/2))
	require.GreaterOrEqual(t, w.late, a.takes/2)

	a = arrivals{}
	for w.await(time.Second) {
	}
	require.GreaterOrEqual(t, a.times, hastyMost)
}

// A rank sleeps in the kernel if it knows of what it waits for, no other goroutine wants a processor, and no program computes
// beside a call on a Stream.
func TestAwaitIfNobodyWantsTheProcessor(t *testing.T) {
	c := ranks(t, 2, Options{})[0]
	require.False(t, c.Standing.await(&Waiter{}, time.Second), "nothing can be awaited")
	a := arrivals{takes: 2 * NapMin}
	w := Waiter{Arrivals: &a}
	awaits := func(d time.Duration) {
		for !c.Standing.await(&w, d) { // as long as other goroutines want it
		}
	}
	awaits(a.takes / 2)
	late := c.Standing.late
	require.GreaterOrEqual(t, late, a.takes/2, "for the next wait")
	a.times = 0
	awaits(time.Second)
	require.Equal(t, late/2, c.Standing.late, "less, where something has come")
	c.Current.running = &call.Call{Queued: true}
	for range 100 {
		require.False(t, c.Standing.await(&w, time.Second))
	}
	c.Current.running = nil
	require.Equal(t, 1, a.times)

	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	var stop atomic.Bool
	var computing sync.WaitGroup
	computing.Go(func() {
		for !stop.Load() {
			for began := time.Now(); time.Since(began) < time.Millisecond; {
			}
			runtime.Gosched()
		}
	})
	slept := 0
	for range 100 {
		if c.Standing.await(&w, time.Second) { // now and then Go's scheduler goes on with this goroutine
			slept++
		}
	}
	stop.Store(true)
	computing.Wait()
	require.Less(t, slept, 20)
}

// The ranks that a call waits for: those that are late in a collective, or, from peer to peer, the one that does not wait.
func TestMissing(t *testing.T) {
	all := ranks(t, 4, Options{})
	c := all[0]
	c.Site.Here.Mine = 9 // the others live in other processes
	missing := func(peers ...int) []int {
		return Unfinished(c, context.DeadlineExceeded, context.DeadlineExceeded, peers...).Missing
	}
	require.Nil(t, missing(1), "none is late: no rank has made a call")
	for _, r := range []int{0, 1, 3} {
		enter(all[r], call.Barrier)
	}
	require.Equal(t, []int{2}, missing(1), "late in the collective")
	enter(all[2], call.Barrier)
	require.Nil(t, missing(1), "all have come: it is at work")
	c.Share.Local.Waits(1).Store(1<<32 | 4)
	require.Nil(t, missing(1))
	require.Nil(t, missing())
	c.Current.lockstep, c.Order.Round = true, 1
	*c.Share.Local.Flag(3, 1) = 1<<32 | 1
	require.Equal(t, []int{2}, missing(), "of those that have not posted this round, the one that does not wait")
	c.Share.Local.Waits(1).Store(0)
	require.Equal(t, []int{1, 2}, missing(), "those that have not posted this round")
	c.Order.Round = 2
	*c.Share.Local.Flag(1, 1), *c.Share.Local.Flag(3, 2) = 1<<32|1, 2<<32|1
	require.Equal(t, []int{2}, missing(), "the one that is furthest behind")
	c.Order.Round = 1

	sleeps(c, call.Recv, 1, 0)
	c.Current.lockstep = false
	c.Share.Local.Waits(1).Store(3) // for rank 2
	require.Equal(t, []int{2}, missing(1), "its peer waits for that one")
	require.Equal(t, []int{2, 3}, missing(1, 3), "and another does not come")
	c.Share.Local.Waits(2).Store(1) // for rank 0
	c.Share.Local.Waits(0).Store(2) // for rank 1
	require.Nil(t, missing(1), "they wait for each other")
}

// A pause of the process is no time that a call has taken: after it, those it waits for have as much as they had before, and the late
// among them is told from those that wait themselves.
func TestPausesTakeNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 2 * time.Second
		c := ranks(t, 2, Options{Agreed: group.Agreed{Timeout: limit}})[0]
		job := &c.Site.Job.Time
		look := func(after time.Duration) { // as the monitor
			time.Sleep(after)
			job.Lived.Lap(time.Now())
			job.Coarse.Stamp(time.Now(), false)
		}
		look(0)
		enter(c, call.Barrier)
		for range limit / 2 / tick {
			look(tick)
		}
		look(time.Hour)
		took := limit/2 + 100*time.Millisecond // that is lived of a pause
		for ; took <= limit; took += tick {
			require.Nil(t, c.Interrupted(t.Context()), "%v", took)
			look(tick)
		}
		f := c.Interrupted(t.Context())
		require.NotNil(t, f)
		require.Equal(t, call.Timeout, f.Code)
	})
}

// A call that looks for itself ends with its Comm, its context, or its time.
func TestInterrupted(t *testing.T) {
	c := ranks(t, 2, Options{Agreed: group.Agreed{Timeout: time.Second}})[0]
	require.Nil(t, c.Interrupted(t.Context()))
	c.Site.Job.Time.Coarse.Stamp(c.Site.Job.Time.Coarse.Born.Add(time.Second), false)
	require.Nil(t, c.Interrupted(t.Context()), "just in time")
	c.Site.Job.Time.Coarse.Stamp(c.Site.Job.Time.Coarse.Born.Add(time.Second+2), false)
	f := c.Interrupted(t.Context())
	require.Equal(t, []any{call.Timeout, -1}, []any{f.Code, f.Peer})
	require.EqualError(t, f.Err, "on rank 0: not done after 1s")
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	require.Same(t, f, c.Interrupted(canceled), "the first cause stays")
}
