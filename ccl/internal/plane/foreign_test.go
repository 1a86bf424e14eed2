package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/region"
)

// The monitor hears when a foreign call began or, with none under way, when the device came to a stand.
func TestForeignSince(t *testing.T) {
	for _, tc := range []struct {
		name   string
		began  uint64
		stands int64
		want   uint64
	}{
		{"neither", 0, 0, 0},
		{"a call", ForeignCall | 7, 0, ForeignCall | 7},
		{"a device that stands", 0, 9, ForeignCall | 9},
		{"a device that stands since before the job", 0, -3, ForeignCall},
		{"both", ForeignCall | 7, 9, ForeignCall | 7},
	} {
		var e Elsewhere
		e.Foreign.Store(tc.began)
		e.Stands(tc.stands)
		require.Equal(t, tc.want, e.foreignSince(), tc.name)
		e.Stands(0)
		require.Equal(t, tc.began, e.foreignSince(), "%s, until it moves", tc.name)
	}
}

// A call of another engine begins now, by the coarse clock, until it has ended.
func TestInside(t *testing.T) {
	c := ranks(t, 2, Options{})[0]
	c.Site.Job.Time.Coarse.Stamp(c.Site.Job.Time.Coarse.Born.Add(900), false)
	c.Inside(true)
	require.Equal(t, uint64(ForeignCall|900), c.Standing.Elsewhere.foreignSince())
	require.EqualValues(t, 900, c.Current.began)
	c.Inside(false)
	require.Zero(t, c.Standing.Elsewhere.foreignSince())
}

// The monitor finds what a call of another engine cannot notice itself.
func TestWatchForeign(t *testing.T) {
	const ms = int64(time.Millisecond)
	for _, tc := range []struct {
		name   string
		before func(all []*Member)
		now    int64
		code   call.Code // 0: nothing is wrong
	}{
		{"no call", func(all []*Member) { all[0].Standing.Elsewhere.Foreign.Store(0); enter(all[1], call.AllReduce) }, 99 * ms, 0},
		{"it is at work", func(all []*Member) {}, 9 * ms, 0},
		{"just in time", func(all []*Member) {}, 12 * ms, 0},
		{"too late", func(all []*Member) {}, 12*ms + 1, call.Timeout},
		{"another call", func(all []*Member) { enter(all[1], call.AllReduce) }, 9 * ms, call.Mismatch},
		{"the rank that is late has closed the Comm", func(all []*Member) { all[0].Share.Local.State(1).Store(region.StateClosed) }, 9 * ms, call.Closed},
		{"the memory is gone", func(all []*Member) { all[0].Share.gone = true }, 99 * ms, 0},
		{"the Comm has failed", func(all []*Member) { all[0].Fate.cause.Store(&call.Fault{Code: call.Aborted}) }, 99 * ms, call.Aborted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := ranks(t, 2, Options{Agreed: group.Agreed{Timeout: 10 * time.Millisecond}})
			c := all[0]
			enter(c, call.Barrier)
			c.Standing.Elsewhere.Foreign.Store(ForeignCall | uint64(2*ms))
			tc.before(all)
			c.watchForeign(tc.now)
			if tc.code == 0 {
				require.Never(t, func() bool { return c.Fate.proposal.Load() != nil }, 5*time.Millisecond, time.Millisecond)
				return
			}
			require.Eventually(t, func() bool { return c.Fate.cause.Load() != nil }, 10*time.Second, time.Millisecond)
			require.Equal(t, tc.code, c.Fate.cause.Load().Code)
		})
	}
}
