package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// numbers are those of the last statuses of the world's ranks, with what they do.
func numbers(c *Member) map[int32][2]int {
	got := map[int32][2]int{}
	for _, s := range c.Site.Job.Statuses.Of(group.WorldID) {
		got[s.Rank] = [2]int{int(s.Number), int(s.Doing)}
	}
	return got
}

// A rank says where it stands once its call has waited for half a second, or a quarter of the timeout; again while it waits,
// and what changes.
func TestCheckPublishes(t *testing.T) {
	for _, tc := range []struct {
		timeout, after time.Duration
	}{{0, publishAfter + 2*perRank}, {time.Second, 250 * time.Millisecond}, {time.Minute, publishAfter + 2*perRank}} {
		t.Run(tc.timeout.String(), func(t *testing.T) {
			c := ranks(t, 2, Options{Agreed: group.Agreed{Timeout: tc.timeout}})[0]
			enter(c, call.Barrier)
			const since = int64(time.Millisecond)
			sleeps(c, call.Barrier, 1, since)
			at := since + int64(tc.after)
			c.check(at - 1)
			require.Empty(t, numbers(c))
			c.check(at)
			require.Equal(t, map[int32][2]int{0: {1, int(status.Waits)}}, numbers(c))
			c.check(at + int64(status.Again(2)) - 1)
			require.Equal(t, map[int32][2]int{0: {1, int(status.Waits)}}, numbers(c), "nothing is new")
			at += int64(status.Again(2))
			c.check(at)
			require.Equal(t, map[int32][2]int{0: {2, int(status.Waits)}}, numbers(c), "it still waits")
			c.noteAgain(&Waiter{}, -1)
			c.check(at + 1)
			require.Equal(t, map[int32][2]int{0: {2, int(status.Waits)}}, numbers(c), "it has just said so")
			at += int64(publishEvery + 2*perRank)
			c.check(at)
			require.Equal(t, map[int32][2]int{0: {3, int(status.Waits)}}, numbers(c), "for others")
			c.EndSleep()
			c.Standing.note.heardAt = at // as of any rank that has heard of a wait
			c.check(at + int64(publishEvery+2*perRank))
			require.Equal(t, map[int32][2]int{0: {4, int(status.Outside)}}, numbers(c), "no more")
			c.check(at + int64(follow+publishEvery+2*perRank))
			require.Zero(t, c.Standing.note.heardAt, "nobody has waited for long")
			require.Equal(t, map[int32][2]int{0: {4, int(status.Outside)}}, numbers(c))
		})
	}
}

// However many ranks there are, a change is told before the next wait is: else two seem to wait for each other.
func TestPublishes(t *testing.T) {
	for _, tc := range []struct {
		n                           int
		timeout, warn, after, every time.Duration
	}{
		{2, 0, 10 * time.Second, 520 * time.Millisecond, 70 * time.Millisecond},
		{2, 100 * time.Millisecond, 0, 25 * time.Millisecond, 18750 * time.Microsecond},
		{500, 4 * time.Second, 0, time.Second, 750 * time.Millisecond},
		{1000, time.Minute, 0, 9 * time.Second, 6750 * time.Millisecond},
		{1000, time.Minute, time.Second, time.Second, 750 * time.Millisecond},
		{120_960, 0, 10 * time.Second, publishMost, 6750 * time.Millisecond},
	} {
		after, every := publishes(tc.n, tc.timeout, tc.warn)
		require.Equal(t, []time.Duration{tc.after, tc.every}, []time.Duration{after, every}, "%d ranks", tc.n)
	}
}

// A call that has waited for Options.StallWarn is reported once.
func TestCheckWarns(t *testing.T) {
	late := make(chan status.Late, 10)
	c := ranks(t, 2, Options{Hooks: Hooks{StallWarn: time.Second, OnLate: func(l status.Late) { late <- l }, Caller: func() string { return "main.go:7" }}})[0]
	c.Standing.Label.SetName("tp")
	enter(c, call.Barrier)
	sleeps(c, call.Barrier, 1, 10)
	c.check(10 + int64(time.Second) - 1)
	require.Zero(t, c.Standing.note.warned)
	c.check(10 + int64(time.Second))
	l := <-late
	require.Equal(t, []any{"tp", "main.go:7", int32(0), []int{1}}, []any{l.Waits.Name(), l.Waits.Caller(), l.Waits.Rank, l.Unheard})
	c.check(10 + 9*int64(time.Second))
	require.EqualValues(t, 11, c.Standing.note.warned)
	require.Empty(t, late, "once for a call")
}

// A queued call is not said to be made where an earlier blocking one was: of that alone the place is known.
func TestCheckWarnsOfAQueuedCall(t *testing.T) {
	late := make(chan status.Late, 1)
	c := ranks(t, 2, Options{Hooks: Hooks{StallWarn: time.Second, OnLate: func(l status.Late) { late <- l }, Caller: func() string { return "main.go:7" }}})[0]
	enter(c, call.Barrier)
	c.Current.began = 10
	c.noteSleep(&call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier, Seq: c.Order.Calls}}, Queued: true}, &Waiter{}, 1)
	c.check(10 + int64(time.Second))
	l := <-late
	require.Empty(t, l.Waits.Caller())
	require.Empty(t, c.Site.Job.Statuses.Of(c.Group.ID())[0].Caller(), "nor to the other ranks")
}

// When a Comm fails each rank says, once, where it stood: after a loss to the host that reports that, and else to all.
func TestCheckAfterFailure(t *testing.T) {
	for _, tc := range []struct {
		name   string
		code   call.Code
		hosts  algo.Topology
		told   status.Doing // by this rank, before
		report bool
	}{
		{"a loss", call.RankLost, algo.Blocks(2, 1), status.AtWork, true},
		{"all believe that this rank waits", call.RankLost, algo.Blocks(2, 1), status.Waits, false},
		{"the reporting host has lost the rank, and may be lost", call.RankLost, algo.Flat(2), status.AtWork, false},
		{"others follow its wait", call.Timeout, algo.Blocks(2, 1), status.AtWork, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ranks(t, 2, Options{})[0]
			c.Site.Job.World.Topo = tc.hosts
			enter(c, call.Barrier)
			sleeps(c, call.Barrier, 1, 10)
			c.Standing.note.published.Doing = tc.told
			require.True(t, c.FailHere(&call.Fault{Code: tc.code, Peer: 1}))
			require.False(t, c.FailHere(&call.Fault{Code: call.Aborted, Peer: 1}), "it has failed")
			require.True(t, c.Standing.needsMonitor())
			c.EndSleep()
			c.check(100)
			c.check(200)
			all := c.Site.Job.Statuses.Of(group.WorldID)
			require.Len(t, all, 1)
			require.Equal(t, []any{uint64(1), status.Waits, true, tc.report, int32(1)}, []any{all[0].Number, all[0].Doing, all[0].Failed, all[0].Report, all[0].Peer})
			require.False(t, c.Standing.needsMonitor())
		})
	}
}

// A Comm that is closed tells where its rank stood, also while it is just failing.
func TestLingerWhileItFails(t *testing.T) {
	s := ranks(t, 2, Options{})[0].Site
	for id := range uint64(200) {
		c := memberOf(t, s, 2+id, 0, Options{})
		failed := make(chan bool)
		go func() {
			c.FailHere(&call.Fault{Code: call.RankLost, Peer: 1})
			close(failed)
		}()
		for over := false; !over; {
			select {
			case <-failed:
				over = true
			default:
			}
			c.Standing.note.Lock() // as Linger does
			c.publishAtFailure(1)
			c.Standing.note.Unlock()
		}
		where, told := s.Job.Statuses.At(2+id, 0)
		require.True(t, told && where.Failed)
	}
}

// After a loss a rank whose Comm goes on says once where it stands, to the reporting host: the others have not heard it.
func TestCheckReports(t *testing.T) {
	c := ranks(t, 2, Options{})[0]
	c.Site.Job.World.Topo = algo.Blocks(8, 1)
	enter(c, call.Barrier)
	loss := event.New(0, call.RankLost, 7, -1, 0, nil)
	c.Site.believe(&loss)
	for _, at := range []int64{10, 20} {
		c.check(at)
		require.Equal(t, map[int32][2]int{0: {1, int(status.Outside)}}, numbers(c))
		require.True(t, c.Site.Job.Statuses.Of(group.WorldID)[0].Report)
	}
	c.Standing.note.heardAt = 30
	c.check(30 + int64(publishEvery+2*perRank))
	require.Equal(t, map[int32][2]int{0: {2, int(status.Outside)}}, numbers(c))
	require.False(t, c.Site.Job.Statuses.Of(group.WorldID)[0].Report)
}

// A failure asks ranks whose Comms go on to say where they stand, to the reporting host or to all.
func TestAlarms(t *testing.T) {
	for _, tc := range []struct {
		name           string
		event          event.Event
		reports, asked bool
	}{
		{"a loss", event.New(0, call.RankLost, 7, -1, 0, nil), true, false},
		{"a loss on the reporting host", event.New(0, call.RankLost, 3, -1, 0, nil), false, true},
		{"a loss as one Comm sees it", event.New(9, call.RankLost, 7, -1, 0, nil), false, true},
		{"a timeout", event.New(9, call.Timeout, 7, -1, 0, nil), false, true},
		{"an end that a program has asked for", event.New(9, call.Canceled, 7, -1, 0, nil), false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ranks(t, 2, Options{})[0]
			c.Site.Job.World.Topo = algo.Blocks(2, 4)
			c.Site.believe(&tc.event)
			require.Equal(t, []bool{tc.reports, tc.asked}, []bool{c.Standing.reports.Load(), c.Standing.asked.Load()})
		})
	}
}

// What the monitor has to look at again soon.
func TestNeedsMonitor(t *testing.T) {
	for name, change := range map[string]func(c *Member){
		"nothing":                      func(*Member) {},
		"a call sleeps":                func(c *Member) { c.noteSleep(&call.Call{}, &Waiter{}, 1) },
		"another rank waits":           func(c *Member) { c.Standing.asked.Store(true) },
		"a rank was lost":              func(c *Member) { c.Standing.reports.Store(true) },
		"has waited":                   func(c *Member) { c.Standing.note.heardAt = 1 },
		"others believe that it waits": func(c *Member) { c.Standing.note.published.Doing = status.Waits },
		"it has set its bell":          func(c *Member) { c.Standing.Bell.sleep.Store(true) },
		"it is in another engine":      func(c *Member) { c.Inside(true) },
		"a device stands still":        func(c *Member) { c.Standing.Elsewhere.Stands(1) },
		"the abort word is set":        func(c *Member) { c.Fate.wordSince = 1 },
		"it has proposed a failure":    func(c *Member) { c.Fate.proposal.Store(&call.Fault{}) },
	} {
		c := ranks(t, 2, Options{})[0]
		require.False(t, c.Standing.needsMonitor(), name)
		change(c)
		require.Equal(t, name != "nothing", c.Standing.needsMonitor(), name)
	}
}

// A Comm whose abort word is set fails when nothing has said why for a second, and names the rank that set it.
func TestCheckAbortWord(t *testing.T) {
	c := ranks(t, 3, Options{})[0]
	c.checkAbortWord(time.Minute)
	require.Zero(t, c.Fate.wordSince)
	c.Share.Local.Abort().Store(1 + 2)
	c.checkAbortWord(time.Minute)
	require.Equal(t, time.Minute, c.Fate.wordSince)
	c.checkAbortWord(time.Minute + explainFor)
	require.Nil(t, c.Fate.cause.Load())
	c.Share.Local.Abort().Store(0)
	c.checkAbortWord(time.Minute + explainFor)
	require.Zero(t, c.Fate.wordSince, "it was another's memory")
	c.Share.Local.Abort().Store(1 + 2)
	c.checkAbortWord(0)
	c.checkAbortWord(explainFor + 2)
	f := c.Fate.cause.Load()
	require.NotNil(t, f)
	require.Equal(t, []any{call.Aborted, 2}, []any{f.Code, f.Peer})
}
