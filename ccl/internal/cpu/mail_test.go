package cpu

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/op"
)

// What has become of a rank counts for its messages as it does for its calls: a connection that breaks is the echo of a failure
// that is reported, or of a Comm that the rank has closed. Else the Comm fails for it, on all ranks, and the rank is lost where
// nobody listens any more.
func TestSevered(t *testing.T) {
	why := errors.New("the connection broke")
	cause := call.NewFault(call.Aborted, 1, "on purpose")
	for _, tc := range []struct {
		name    string
		happens func(all []*Comm)
		left    bool
		want    call.Code
		says    string
	}{
		{"it lives", func([]*Comm) {}, false, call.Backend, why.Error()},
		{"nobody listens there", func(all []*Comm) {
			j := all[0].rank.Site.Job
			j.Net.Addrs = group.BookOf(j.World.Topo, j.Net.TCP.Addr(), netip.MustParseAddrPort("127.0.0.1:1"))
		}, false, call.RankLost, why.Error()},
		{"it has closed the Comm", func(all []*Comm) { all[1].Close() }, true, 0, ""},
		{"the Comm fails there", func(all []*Comm) { all[1].Fail(cause) }, false, call.Aborted, cause.Err.Error()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // it waits for reports
			all := commsOf(t, []string{"a", "b"}, testTerms(), plane.Options{Agreed: group.Agreed{PeerTimeout: time.Second}})
			tc.happens(all)
			require.Equal(t, tc.left, severed(t.Context(), all[0], 1, why))
			if tc.left {
				require.Nil(t, all[0].Failure())
				return
			}
			for r, c := range all {
				<-c.rank.Fate.Context().Done()
				f := c.Failure()
				require.Equal(t, tc.want, f.Code, "rank %d: %+v", r, f)
				require.Equal(t, 1, f.Peer, "rank %d", r)
				require.ErrorContains(t, f.Err, tc.says, "rank %d", r)
			}
		})
	}
}

// apart is rank 0 of three, which are on those hosts, as it sees the others: their processes are said to listen at those addresses.
func apart(t *testing.T, nodes []int, addrs ...netip.AddrPort) *Comm {
	t.Helper()
	j := plane.EnterJob(t.Name(), time.Minute)
	topo := group.Topology(nodes, 2)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host, s.Here.Procs = topo, plane.PrivateHost(), []int{0, 1}[:topo.Locals(0)]
	require.NoError(t, j.Listen("lo", netip.MustParseAddr("127.0.0.1"), testTerms().Secret, auth.Plain))
	j.Net.Addrs = group.BookOf(topo, append([]netip.AddrPort{j.Net.TCP.Addr()}, addrs...)...)
	off, err := s.Here.Host.Alloc(region.Bytes(topo.Locals(0)))
	require.NoError(t, err)
	c, err := newComm(s, group.WorldID, group.MembersOf([]int{0, 1, 2}), topo, 0, off, plane.Options{})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var clock sync.WaitGroup // it goes on as the monitor has it
	clock.Go(func() {
		for ctx.Err() == nil {
			j.Time.Lived.Lap(time.Now())
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Cleanup(func() {
		j.Remove(&c.rank)
		j.Leave()
		stop()
		clock.Wait()
	})
	return c
}

// Where the lead of a host has left, and the next has not come, a rank of that host may be slow to speak for it, and its
// messages are waited for, unless nobody listens there any more.
func TestMailOfAHostWithoutALead(t *testing.T) {
	live, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { live.Close() })
	listens, nobody := live.Addr().(*net.TCPAddr).AddrPort(), netip.MustParseAddrPort("127.0.0.1:1")
	for _, tc := range []struct {
		name  string
		nodes []int
		addr  netip.AddrPort
		from  int
		want  *call.Fault
	}{
		{"of another host", []int{0, 1, 1}, listens, 2, nil},
		{"of this host", []int{0, 0, 1}, listens, 1, nil},
		{"of another host, where nobody listens", []int{0, 1, 1}, nobody, 2, call.NewFault(call.Closed, 2, "")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // it waits
			c := apart(t, tc.nodes, tc.addr, tc.addr)
			j := c.rank.Site.Job
			j.World.SetLead(j.World.Topo.Node(tc.from), 1, gone.Left)
			a, err := OpenMail(c)
			require.NoError(t, err)
			r := a.Recv(mail.What{Type: op.Uint8, Count: 1, Mem: make([]byte, 1)}, tc.from)
			defer a.End(call.NewFault(call.Closed, -1, ""), true)
			const patience = 3 * time.Second // more than mail has
			for until := j.Net.Post.Lived() + patience; j.Net.Post.Lived() < until; time.Sleep(time.Millisecond) {
				select {
				case <-r.Done():
					require.Equal(t, tc.want, r.Fault())
					return
				default:
				}
			}
			require.Nil(t, tc.want, "it waits")
		})
	}
}
