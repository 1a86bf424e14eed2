package plane

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
)

// A report takes as long as a process may be silent that is not lost, and a moment.
func TestReportWithin(t *testing.T) {
	for _, tc := range []struct {
		name string
		peer time.Duration
		many int // processes for each processor
		want time.Duration
	}{
		{"as Options.PeerTimeout says", time.Minute, 3, time.Minute + SoonFor},
		{"where nobody is given up", 0, 3, reportAfter + SoonFor},
		{"of hundreds of processes to a processor", time.Second, 1000, 40*time.Second + SoonFor},
		{"of them, where nobody is given up", 0, 1000, 40*time.Second + SoonFor},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(&Job{peer: tc.peer}, 0)
			crowd(t, s, tc.many)
			require.Equal(t, tc.want, ReportWithin(s))
		})
	}
}

// Nobody has anything to say of the process of a host on which none is left, once the one that led it has gone.
func TestLossReportWithin(t *testing.T) {
	left := func(s *Site, _ func()) { s.Job.markLeft(2, []int{4}) }
	lost := func(s *Site, _ func()) { s.Job.reportLost(4) }
	for _, tc := range []struct {
		name   string
		before func(s *Site, end func()) // which ends the last process of the host
		want   time.Duration
	}{
		{"it leads its host", func(_ *Site, end func()) { end() }, time.Minute + SoonFor},
		{"the lead before has left, and another process is there", left, time.Minute + SoonFor},
		{"the lead before has left, and nobody is there", func(s *Site, end func()) { left(s, end); end() }, SoonFor},
		{"the lead before is lost, and another process is there", lost, time.Minute + SoonFor},
		{"the lead before is lost, and nobody is there", func(s *Site, end func()) { lost(s, end); end() }, SoonFor},
		{"the lead before is lost, and the next has come", func(s *Site, end func()) { lost(s, end); end(); s.Job.World.Occupy(2) }, time.Minute + SoonFor},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, _ := leadOfThree(t)
			s.Job.peer = time.Minute
			ended, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			last, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer last.Close()
			addrs := make([]netip.AddrPort, 6)
			addrs[4], addrs[5] = ended.Addr().(*net.TCPAddr).AddrPort(), last.Addr().(*net.TCPAddr).AddrPort()
			for w := range 4 {
				addrs[w] = netip.AddrPortFrom(addrs[4].Addr(), 1)
			}
			s.Job.Net.Addrs = group.BookOf(s.Job.World.Topo, addrs...)
			require.NoError(t, ended.Close())
			tc.before(s, func() { last.Close() })
			require.Equal(t, tc.want, LossReportWithin(s, 5))
		})
	}
}

// A report is waited for as long as it may take, and no longer than it is of use.
func TestAwaitReport(t *testing.T) {
	const limit = time.Minute
	never := func() bool { return false }
	cause := call.NewFault(call.RankLost, 1, "the cause")
	for _, tc := range []struct {
		name string
		then func(c *Member, cancel func()) // after half of the limit
		over func(began time.Time) func() bool
		want *call.Fault
		late bool // it is waited for to the end
	}{
		{"it comes", func(c *Member, _ func()) { c.FailHere(cause) }, nil, cause, false},
		{"none comes", func(*Member, func()) {}, nil, nil, true},
		{"none will come", func(*Member, func()) {}, func(began time.Time) func() bool {
			return func() bool { return time.Since(began) >= limit/2 }
		}, nil, false},
		{"the call outlives a process", func(c *Member, _ func()) { c.Fate.outlived.Store(&outlived{fault: cause}) }, nil, nil, false},
		{"the context ends", func(_ *Member, cancel func()) { cancel() }, nil, call.CtxFault(context.Canceled, 0, nil), false},
		{"the call takes Options.Timeout", func(c *Member, _ func()) { c.Site.Job.Time.Coarse.Stamp(time.Now(), false) }, nil, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := ofTwo(t, limit, Options{Agreed: group.Agreed{Timeout: limit / 4}}) // by the coarse clock, which stands still
				j := c.Site.Job
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began, over := time.Now(), never
				lives(t, j)
				if tc.over != nil {
					over = tc.over(began)
				}
				timer := time.AfterFunc(limit/2, func() { tc.then(c, cancel) })
				defer timer.Stop()
				require.Equal(t, tc.want, AwaitReport(ctx, c, limit, over))
				want := limit / 2
				if tc.late {
					want = limit
				}
				require.InDelta(t, want, time.Since(began), float64(2*tick))
			})
		})
	}
}
