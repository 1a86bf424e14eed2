package links

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
)

// A link is made once for each peer and class. It can be read from once the peer has made its end, and both ends know each
// other then.
func TestLinkIsMadeOnce(t *testing.T) {
	all := ranksOf(t, 2, plane.Options{})
	link := func(c *Links, peer int, cl class) *Link {
		l, f := c.Ends.Link(t.Context(), peer, cl)
		require.Nil(t, f)
		return l
	}
	ready := func(c *Links, l *Link) bool {
		ok, f := c.Ends.Ready(l)
		require.Nil(t, f)
		return ok
	}
	l := link(all[0], 1, collective)
	require.Same(t, l, link(all[0], 1, collective))
	require.NotSame(t, l, link(all[0], 1, PointToPoint))
	require.False(t, ready(all[0], l), "the peer has made no pipe")
	theirs := link(all[1], 0, collective)
	require.True(t, ready(all[0], l))
	require.True(t, ready(all[1], theirs))
	require.Same(t, l.From, l.To.back)
	n, err := l.out.TrySend([]byte("abc"))
	require.NoError(t, err)
	require.Equal(t, 3, n)
	b := make([]byte, 9)
	n, err = theirs.in.TryRecv(b)
	require.NoError(t, err)
	require.Equal(t, "abc", string(b[:n]))
	require.Len(t, all[0].Ends.made, 2)
}

// What a peer says last is why it leaves. A failure of which this rank is blamed is one of the peer, as this rank sees it, and
// so is one of a third rank, until the control plane says so, too.
func TestFarewell(t *testing.T) {
	t.Parallel() // where no report comes, it is waited for
	c := ranksOf(t, 3, plane.Options{Agreed: group.Agreed{PeerTimeout: time.Second}})[0]
	lives(t, c.rank.Site.Job)
	for _, tc := range []struct {
		name string
		head head
		want *call.Fault
	}{
		{"data", head{kind: messageData}, nil},
		{"closed", head{kind: messageBye}, call.NewFault(call.Closed, 1, "")},
		{"failed by another, as nobody else says", head{kind: messageFailed, step: uint32(call.RankLost), record: call.Record{Root: 2}}, call.NewFault(call.Backend, 1, "it left the call for a failure of rank 2 that no rank has reported")},
		{"failed by no rank", head{kind: messageFailed, step: uint32(call.Timeout), record: call.Record{Root: -1}}, call.NewFault(call.Backend, 1, "it left the call for a failure of rank -1 that no rank has reported")},
		{"failed by itself", head{kind: messageFailed, step: uint32(call.Aborted), record: call.Record{Root: 1}}, call.NewFault(call.Aborted, 1, "")},
		{"failed by this one", head{kind: messageFailed, step: uint32(call.Timeout), record: call.Record{Root: 0}}, call.NewFault(call.Timeout, 1, "")},
		{"no code", head{kind: messageFailed, record: call.Record{Root: 2}}, call.NewFault(call.RankLost, 1, "")},
		{"a code that is none", head{kind: messageFailed, step: uint32(call.Closed) + 1, record: call.Record{Root: 2}}, call.NewFault(call.RankLost, 1, "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, tc.want, c.Ends.farewell(t.Context(), &tc.head, 1))
		})
	}
}

// Whomever a peer blames as it leaves: the report is waited for, and is what this rank believes, since it has the cause. A peer
// that closes a Comm at once says good bye before its report has come. That of a third rank's failure may pass processes that wait for
// their turn on a processor: it may take as long as one that is not lost may be silent.
func TestFarewellBeforeTheReport(t *testing.T) {
	for blamed, code := range []call.Code{call.Aborted, call.Aborted, call.RankLost} {
		t.Run(fmt.Sprintf("blames rank %d", blamed), func(t *testing.T) {
			c := ranksOf(t, 3, plane.Options{Agreed: group.Agreed{PeerTimeout: time.Minute}})[0]
			lives(t, c.rank.Site.Job)
			reported := call.NewFault(code, blamed, "the cause")
			said := make(chan *call.Fault, 1)
			go func() {
				said <- c.Ends.farewell(t.Context(), &head{kind: messageFailed, step: uint32(code), record: call.Record{Root: int32(blamed)}}, 1)
			}()
			select {
			case f := <-said:
				t.Fatalf("it believes the peer: %+v", f)
			case <-time.After([]time.Duration{20 * time.Millisecond, 20 * time.Millisecond, 3 * plane.SoonFor}[blamed]):
			}
			require.True(t, c.rank.FailHere(reported))
			require.Same(t, reported, <-said)
			require.NoError(t, c.Ends.ask(t.Context(), 1), "a rank of this host needs no connection to say so")
		})
	}
}

// noSecret is that of a job which has none.
var noSecret, _ = auth.None(nil)

// far is rank 0 of a Comm of two hosts, as it sees rank 1, whose process is said to listen at addr.
func far(t *testing.T, addr netip.AddrPort) *Links { return farOf(t, addr, time.Minute) }

// farOf is far with that PeerTimeout.
func farOf(t *testing.T, addr netip.AddrPort, silence time.Duration) *Links {
	t.Helper()
	j := plane.EnterJob(t.Name(), silence)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host, s.Here.Procs = group.Topology([]int{0, 1}, 2), plane.PrivateHost(), []int{0}
	require.NoError(t, j.Listen("lo", netip.MustParseAddr("127.0.0.1"), noSecret, auth.Plain))
	j.Net.Addrs = group.BookOf(s.Job.World.Topo, j.Net.TCP.Addr(), addr)
	off, err := s.Here.Host.Alloc(region.Bytes(1))
	require.NoError(t, err)
	shared, err := s.Here.Host.View(off, region.Bytes(1))
	require.NoError(t, err)
	c, m, mem := new(Links), new(plane.Member), new(reach.Reach)
	m.Init(s, group.WorldID, group.Members{Stride: 1}, s.Job.World.Topo, 0, region.New(off, shared, 1), plane.Options{})
	mem.Init(m)
	c.Init(m, mem, new(call.Workspace))
	m.Enlist()
	lives(t, j)
	t.Cleanup(func() {
		j.Remove(m)
		j.Leave()
	})
	return c
}

// slowly passes what is dialed on to addr, once that time is over.
func slowly(t *testing.T, addr netip.AddrPort, after time.Duration) netip.AddrPort {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				time.Sleep(after)
				out, err := net.Dial("tcp", addr.String())
				if err != nil {
					return
				}
				defer out.Close()
				go io.Copy(out, in)
				io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Of a connection that has ended, the process at the other end says what it knows, however late it answers. Where it knows of
// a failure, or has ended, there is a report, which says why.
func TestBrokenConnection(t *testing.T) {
	t.Parallel() // most of it is waiting
	cause := call.NewFault(call.RankLost, 0, "the cause")
	late := 3 * plane.SoonFor
	reports := func(c *Links) {
		time.Sleep(late)
		c.rank.FailHere(cause)
	}
	for _, tc := range []struct {
		name string
		node func(n *tcp.Node)
		slow time.Duration
		then func(c *Links)
		want *call.Fault
	}{
		{"it was cut", func(*tcp.Node) {}, 0, nil, &call.Fault{Code: call.RankLost, Peer: 1, Err: io.ErrUnexpectedEOF}},
		{"it was cut, and the process is slow", func(*tcp.Node) {}, late, nil, &call.Fault{Code: call.RankLost, Peer: 1, Err: io.ErrUnexpectedEOF}},
		{"the Comm is closed", func(n *tcp.Node) { n.Forget(group.WorldID, 1) }, 0, nil, call.NewFault(call.Closed, 1, "")},
		{"the Comm is closed, and the process is slow", func(n *tcp.Node) { n.Forget(group.WorldID, 1) }, late, nil, call.NewFault(call.Closed, 1, "")},
		{"the Comm has failed", func(n *tcp.Node) { n.Fail(group.WorldID, 1) }, 0, reports, cause},
		{"the process has ended", func(n *tcp.Node) { n.Close() }, 0, reports, cause},
		{"the process has left", func(n *tcp.Node) { n.Close() }, 0, func(c *Links) {
			time.Sleep(late)
			c.rank.Site.Post(event.New(0, event.ProcessLeft, 1, -1, 1, nil))
		}, call.NewFault(call.Closed, 1, "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			n, err := tcp.Listen(t.Name(), noSecret, auth.Plain, netip.MustParseAddr("127.0.0.1"))
			require.NoError(t, err)
			defer n.Close()
			addr := n.Addr()
			if tc.slow > 0 {
				addr = slowly(t, addr, tc.slow)
			}
			c := far(t, addr)
			tc.node(n)
			if tc.then != nil {
				go tc.then(c)
			}
			require.Equal(t, tc.want, c.Ends.broken(t.Context(), 1, io.ErrUnexpectedEOF))
		})
	}
}

// A process that no longer listens is as certainly lost as it was when its host said so, whatever this rank comes to suspect while it
// waits for a report.
func TestNotDialedIsCertain(t *testing.T) {
	t.Parallel() // it waits
	c := farOf(t, netip.MustParseAddrPort("127.0.0.1:1"), time.Second)
	s := c.rank.Site
	s.Job.World.Topo = group.Topology([]int{0, 1, 2}, 3) // the last is not of the Comm
	go func() {
		time.Sleep(plane.SoonFor)
		s.Lost(2, errors.New("it is silent"))
		for range 100 {
			time.Sleep(10 * time.Millisecond)
			s.Post(event.New(0, event.RankLeft, 2, -1, 2, nil)) // by which the loss is decided: no monitor runs
		}
	}()
	f := c.Ends.notDialed(t.Context(), 1, tcp.ErrRefused)
	require.True(t, s.Job.IsLost(2))
	require.False(t, plane.IsCertain(s, 1))
	require.Equal(t, &call.Fault{Code: call.RankLost, Peer: 1, Certain: true, Err: tcp.ErrRefused}, f)
}

// A process that has not answered for as long as its report may take is not waited for once more.
func TestBrokenConnectionUnanswered(t *testing.T) {
	t.Parallel() // it waits

	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers
	require.NoError(t, err)
	defer l.Close()
	const silence = 2 * time.Second
	c := farOf(t, l.Addr().(*net.TCPAddr).AddrPort(), silence)
	began := c.rank.Site.Job.Time.Lived.Now()
	require.Equal(t, &call.Fault{Code: call.RankLost, Peer: 1, Err: io.ErrUnexpectedEOF}, c.Ends.broken(t.Context(), 1, io.ErrUnexpectedEOF))
	require.Less(t, c.rank.Site.Job.Time.Lived.Now()-began, 2*silence, "it was waited for twice")
}

// A rank that waits for the report of a failure notices the end of its context.
func TestBrokenConnectionUntilTheContextEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // nobody answers
	require.NoError(t, err)
	defer l.Close()
	c := far(t, l.Addr().(*net.TCPAddr).AddrPort())
	ctx, cancel := context.WithTimeout(t.Context(), 2*plane.SoonFor)
	defer cancel()
	f := c.Ends.broken(ctx, 1, io.ErrUnexpectedEOF)
	require.NotNil(t, f)
	require.Equal(t, call.Timeout, f.Code, "%+v", f)
}
