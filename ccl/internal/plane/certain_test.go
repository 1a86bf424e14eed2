package plane

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tcp"
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
		{errEnded, event.Certain},
		{fmt.Errorf("%w, or its host cannot be reached", errEnded), event.Ended},
		{errors.New("its process has been silent for 5s"), event.Suspected},
		{errors.New("its host cannot be reached"), event.Suspected},
	} {
		t.Run(tc.why.Error(), func(t *testing.T) {
			j := EnterJob(t.Name(), 0)
			defer j.Leave()
			s := j.Site(0)
			s.Job.World.Topo, s.Here.Host = group.Topology(make([]int, 2), 1), PrivateHost()
			off, err := s.Here.Host.Alloc(region.Bytes(2))
			require.NoError(t, err)
			mem, err := s.Here.Host.View(off, region.Bytes(2))
			require.NoError(t, err)
			c := new(Member)
			c.Init(s, group.WorldID, group.Members{Stride: 1}, s.Job.World.Topo, 0, region.New(off, mem, 2), Options{})
			c.Enlist()
			defer j.Remove(c)
			require.False(t, j.HasEnded(1))
			s.Lost(1, tc.why)
			assert.True(t, j.IsLost(1))
			assert.Equal(t, tc.loss == event.Certain, j.HasEnded(1))
			assert.False(t, j.HasEnded(0))
			f := c.Fate.Cause()
			require.NotNil(t, f)
			assert.Equal(t, call.RankLost, f.Code)
			assert.Equal(t, tc.loss == event.Certain, f.Certain)
			for _, e := range j.undecided.History() {
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
			j.Net.Addrs = tcp.BookOf(netip.MustParseAddrPort(l.Addr().String()), netip.AddrPort{})
			s := j.Site(1)
			s.Here.Host, s.Here.Mine, s.Here.Procs = PrivateHost(), 1, []int{1}
			a, b := auth.Pipe()
			c := &control.Conn{Stream: a, Host: 0, First: 0}
			s.near.conns = append(s.near.conns, c)
			if !listens {
				require.NoError(t, l.Close())
			}
			go func() {
				b.Write([]byte{control.FrameHead, 0, control.FrameBeat, control.FrameVersion}) // it was there
				b.Close()
			}()
			j.Life.Wg.Add(1)
			s.listenTo(c)
			lost := j.undecided.All()
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
