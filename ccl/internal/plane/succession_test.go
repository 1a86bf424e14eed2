package plane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
)

// leadOfThree is this process as the lead of host 1 of three with two ranks each, where each rank is a process; next is
// what its neighbor, of host 0, receives next. No monitor runs.
func leadOfThree(t *testing.T) (s *Site, next func() string) {
	t.Helper()
	j := EnterJob(t.Name(), 0)
	j.World.Topo = algo.Blocks(3, 2)
	var addrs []netip.AddrPort
	for w := range 6 {
		addrs = append(addrs, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(100+w)))
	}
	j.Net.Addrs = group.BookOf(j.World.Topo, addrs...)
	node, err := tcp.Listen(t.Name(), auth.Secret{}, auth.Plain, netip.AddrFrom4([4]byte{127, 0, 0, 1}))
	require.NoError(t, err)
	t.Cleanup(func() { node.Close() })
	j.Net.TCP = node
	s = j.Site(1)
	s.Here.Host, s.Here.Mine, s.Here.Procs = PrivateHost(), 2, []int{2, 3}
	a, b := auth.Pipe()
	s.Near.Conns = append(s.Near.Conns, &control.Conn{Stream: a, Host: 0, First: 0})
	events := make(chan string, 100)
	go func() {
		defer close(events)
		_ = eachFrame(b, func(kind byte, body []byte) {
			if e := (event.Event{}); kind == control.FrameEvent && e.Decode(body) == nil {
				events <- said(call.Code(e.Code), e.Stage, int(e.Peer), int(e.Node))
			}
		})
	}()
	t.Cleanup(func() {
		s.Near.Conns = nil
		a.Close()
		b.Close()
		j.Leave()
	})
	return s, func() string {
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
			s.Near.Flush() // as the monitor does, where a neighbor was slow to take what was sent
			select {
			case e := <-events:
				return e
			case <-time.After(tick):
			}
		}
		return "nothing"
	}
}

func said(code call.Code, stage event.Stage, peer, node int) string {
	return fmt.Sprintf("code %d stage %d peer %d node %d", code, stage, peer, node)
}

// A process that takes the place of its host's lead says so once, when it has reached a neighbor.
func TestAnnounceLead(t *testing.T) {
	s, next := leadOfThree(t)
	s.announceLead() // it was the lead all the time
	s.Job.markLeft(1, []int{2})
	require.Equal(t, 3, s.Job.leadOf(1))
	s.announceLead() // it does not lead any more
	s.Here.Mine = 3
	s.announceLead()
	require.Equal(t, said(event.NewLead, event.Final, 3, 1), next())
	require.Equal(t, gone.Present, s.Job.World.Absence(1))
	s.announceLead()
	s.Post(event.New(0, event.RankLeft, 5, -1, 1, nil))
	require.Equal(t, said(event.RankLeft, event.Final, 5, 1), next(), "it has not said so again")
}

// The lead of a host that leaves says so, and stays until the next has come or has gone, for a while at most.
func TestHandOver(t *testing.T) {
	for _, tc := range []struct {
		name          string
		before, after func(s *Site)
		says          bool
	}{
		{"the next comes", nil, func(s *Site) { s.Job.World.Occupy(1) }, true},
		{"the next leaves", nil, func(s *Site) { s.Job.World.Leave(1, []int{3}) }, true},
		{"the next is lost", nil, func(s *Site) { s.Job.World.Report(3) }, true},
		{"nobody is left to hear of it", nil, func(s *Site) { s.Near.Conns = nil }, true},
		{"the next does not come", nil, func(s *Site) {
			for i := range SoonFor / lived.LapMax {
				s.Job.Time.Lived.Lap(time.Now().Add((i + 1) * time.Hour))
			}
		}, true},
		{"nobody hears", func(s *Site) { s.Near.Conns = nil }, nil, false},
		{"the others have left", func(s *Site) { s.Job.World.Leave(1, []int{3}) }, nil, false},
		{"it does not lead", func(s *Site) { s.Here.Mine = 3 }, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, next := leadOfThree(t)
			s.Job.Time.Lived.Lap(time.Now()) // no monitor moves it on
			conns := s.Near.Conns
			if tc.before != nil {
				tc.before(s)
			}
			done := make(chan struct{})
			go func() { sites{s}.handOver(); close(done) }()
			if tc.says {
				require.Equal(t, said(event.RankLeft, event.Final, 2, 1), next())
				select {
				case <-done:
					require.Fail(t, "it has not stayed")
				case <-time.After(4 * tick):
				}
				s.Job.mu.Lock()
				tc.after(s)
				s.Job.mu.Unlock()
			}
			<-done
			s.Near.Conns = conns
			s.Post(event.New(0, event.RankLeft, 5, -1, 1, nil))
			require.Equal(t, said(event.RankLeft, event.Final, 5, 1), next(), "it has said no more")
		})
	}
}

// reportLost has j hear that rank w of the world is reported lost.
func (j *Job) reportLost(w int) {
	j.mu.Lock()
	newLead := j.World.Report(w)
	j.mu.Unlock()
	if newLead {
		j.joinLeads()
	}
}

// lives moves the clock of j on until the test ends, as the monitor does.
func lives(t *testing.T, j *Job) {
	ctx, stop := context.WithCancel(context.Background())
	var one sync.WaitGroup
	one.Go(func() {
		for ctx.Err() == nil {
			j.Time.Lived.Lap(time.Now())
			time.Sleep(tick)
		}
	})
	t.Cleanup(func() { stop(); one.Wait() })
}

// That nobody listens any more is as certain as it was when it was found: while it is waited for what others say, that host is not
// heard.
func TestReportUnreachableIsCertain(t *testing.T) {
	for _, heard := range []bool{true, false} {
		t.Run(fmt.Sprintf("heard=%v", heard), func(t *testing.T) {
			t.Parallel() // it waits
			s, _ := leadOfThree(t)
			s.Job.peer = watch.LeastSilence
			s.Job.World.Lose(0, false) // a sign of a partition
			if heard {
				s.Near.Hear(2)
			}
			lives(t, s.Job)
			s.reportUnreachable(4, tcp.ErrRefused)
			e, ok := knownTo(s.Job), false
			for i := range e {
				if call.Code(e[i].Code) == call.RankLost {
					ok = true
					require.Equal(t, heard, e[i].Loss == event.Certain)
				}
			}
			require.True(t, ok)
		})
	}
}

// A host may have no lead when it is asked: so it is asked again, a second of time lived later.
func TestAsksAgain(t *testing.T) {
	s, _ := leadOfThree(t)
	at := time.Now()
	s.Job.Time.Lived.Lap(at)
	counted := event.Event{Origin: int32(s.Here.Mine)}
	posted := func() uint64 { // since it was called last
		before := counted.Number
		s.flood.NumberEvent(&counted)
		return counted.Number - before - 1
	}
	left := s.leftYet(4, s.KnownLeft)
	posted()
	for range 3 {
		for i := range askAgain / lived.LapMax {
			require.False(t, left())
			require.Equal(t, i == 0, posted() == 1)
			at = at.Add(lived.LapMax)
			s.Job.Time.Lived.Lap(at)
		}
	}
	s.Job.markLeft(2, []int{4})
	require.True(t, left())
	require.Zero(t, posted())
}

// The lead of a host leaves, and the next dies before it comes: a rank that meets the end of its connection is not to
// take it for one that has left.
func TestDiesBeforeItLeads(t *testing.T) {
	s, _ := leadOfThree(t)
	left := LeftYet(s, 5)
	s.Job.markLeft(2, []int{4})
	require.True(t, s.KnownLeft(5))
	require.False(t, left())
	s.Job.markLeft(2, []int{5})
	require.True(t, left())
}

// What becomes of a lead that cannot be reached.
func TestReportUnreachable(t *testing.T) {
	for _, tc := range []struct {
		name   string
		before func(s *Site)
		err    error
		want   []string
	}{
		{"its host does not answer", func(*Site) {}, errors.New("no route"), []string{said(call.RankLost, event.Proposed, 4, 1)}},
		{"nobody listens, and it has not left", func(*Site) {}, tcp.ErrRefused, []string{said(event.AskLeft, event.Final, 4, 1), said(call.RankLost, event.Proposed, 4, 1)}},
		{"nobody listens, and it has left", func(s *Site) { s.Job.markLeft(2, []int{4}) }, tcp.ErrRefused, nil},
		{"nobody listens, and it has left, as is heard late", func(s *Site) {
			time.AfterFunc(2*asked*tick, func() { s.Job.markLeft(2, []int{4}) })
		}, tcp.ErrRefused, []string{said(event.AskLeft, event.Final, 4, 1)}},
		{"nobody listens, and another leads its host, as is heard late", func(s *Site) {
			time.AfterFunc(2*asked*tick, func() { s.Job.reportLost(4) })
		}, tcp.ErrRefused, []string{said(event.AskLeft, event.Final, 4, 1)}},
		{"nobody listens, and the lead of this host has just left", func(s *Site) { s.Job.World.SetLead(1, 0, gone.Left) }, tcp.ErrRefused,
			[]string{said(event.AskLeft, event.Final, 4, 1), said(event.ProcessLeft, event.Final, 4, 2)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, next := leadOfThree(t)
			s.Job.peer = watch.LeastSilence // that much later it is lost
			tc.before(s)
			lives(t, s.Job)
			s.reportUnreachable(4, tc.err)
			s.Post(event.New(0, event.RankLeft, 1, -1, 1, nil))
			var got []string
			for end := said(event.RankLeft, event.Final, 1, 1); ; {
				e := next()
				if e == end {
					break
				}
				require.NotEqual(t, "nothing", e)
				got = append(got, e)
			}
			require.Equal(t, tc.want, slices.Compact(got)) // it may be asked again: see TestAsksAgain
		})
	}
}

// Where nobody is left to ask, a lead that refuses has left in good order only where all seem to leave: ranks that left
// before do not say so, nor does the end of the lead of a host that has lost one, all of whose ranks are lost then.
func TestReportUnreachableAlone(t *testing.T) {
	lost := func(w int) string { return said(call.RankLost, event.Proposed, w, 1) }
	for _, tc := range []struct {
		name    string
		before  func(s *Site)
		listens bool // rank 5, of the same host
		want    []string
	}{
		{"another rank has left", func(s *Site) { s.Job.World.Leave(2, []int{5}) }, false, []string{lost(4)}},
		{"the lead of another host has just left", func(s *Site) { s.Job.markLeft(0, []int{0}) }, false, []string{said(event.ProcessLeft, event.Final, 4, 2)}},
		{"so has that of this one", func(s *Site) { s.Job.World.SetLead(1, 0, gone.Left) }, false, []string{said(event.ProcessLeft, event.Final, 4, 2)}},
		{"so has that of this one, and a rank of its host is there", func(s *Site) { s.Job.World.SetLead(1, 0, gone.Left) }, true, []string{lost(4)}},
		{"so has that of this one, and its host has lost another lead", func(s *Site) {
			s.Job.World.SetLead(1, 0, gone.Left)
			s.Job.World.SetLead(2, 0, gone.Lost)
		}, false, []string{lost(4), lost(5)}},
		{"its host has lost another lead, and a rank is there", func(s *Site) { s.Job.World.SetLead(2, 0, gone.Lost) }, true, []string{lost(4)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // it waits
			s, _ := leadOfThree(t)
			s.Near.Conns = nil
			s.Job.peer = watch.LeastSilence
			addrs := make([]netip.AddrPort, 6)
			for w := range addrs {
				addrs[w] = s.Job.Net.Addrs.At(w)
			}
			if tc.listens {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				defer l.Close()
				addrs[5] = l.Addr().(*net.TCPAddr).AddrPort()
			}
			s.Job.Net.Addrs = group.BookOf(s.Job.World.Topo, addrs...)
			tc.before(s)
			lives(t, s.Job)
			s.reportUnreachable(4, tcp.ErrRefused)
			var got []string
			for _, e := range knownTo(s.Job) {
				got = append(got, said(call.Code(e.Code), e.Stage, int(e.Peer), int(e.Node)))
			}
			require.Equal(t, tc.want, got)
		})
	}
}

// A loss that all processes of a host find is told once. One that says more of it is told as well, and one whose other teller is lost;
// what is not told is believed should nobody decide.
func TestLossIsToldOnce(t *testing.T) {
	s, next := leadOfThree(t)
	tell := func(peer int) string {
		e := event.New(0, call.RankLost, peer, -1, 1, watch.ErrEnded)
		e.Origin, e.Number, e.Stage, e.Loss = 3, uint64(peer), event.Proposed, event.Ended
		s.Job.Order.Lock()
		s.handle(&e)
		s.Job.Order.Unlock()
		return said(call.RankLost, event.Proposed, peer, 1)
	}
	silent := func(why string) {
		s.Post(event.New(0, event.RankLeft, 0, -1, 1, nil))
		require.Equal(t, said(event.RankLeft, event.Final, 0, 1), next(), why)
	}
	require.Equal(t, tell(4), next())
	s.Lost(4, endOf(s, 4, false))
	silent("another has said so")
	require.Len(t, s.proposals.Due(time.Hour, func(*event.Event) bool { return false }), 1)
	s.Lost(4, watch.ErrEnded)
	require.Equal(t, said(call.RankLost, event.Proposed, 4, 1), next(), "that is certain now")
	s.Job.World.Lose(4, true)
	s.Lost(4, watch.ErrEnded)
	silent("that is believed")
	lost := tell(5)
	require.Equal(t, lost, next())
	s.Job.World.Lose(3, true)
	s.Lost(5, endOf(s, 5, false))
	require.Equal(t, lost, next(), "nobody believes the one that has said so")
}

// What a process has not lived through, since it got no turn on a processor, is no time in which another could have answered.
func TestWithinLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := EnterJob(t.Name(), 0)
		began := time.Now()
		j.Time.Lived.Lap(began)
		ctx, cancel := WithinLived(j, time.Second)
		defer cancel()
		for range 8 {
			time.Sleep(time.Minute)
			j.Time.Lived.Lap(time.Now()) // a gap of a minute counts as a tenth of a second
			require.NoError(t, ctx.Err())
		}
		for range 2 {
			time.Sleep(time.Minute)
			j.Time.Lived.Lap(time.Now())
		}
		<-ctx.Done()
		require.Less(t, time.Since(began), 11*time.Minute)

		other, stop := WithinLived(j, time.Hour)
		defer stop()
		j.Leave()
		<-other.Done()
	})
}
