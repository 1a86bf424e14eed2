package plane

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/op"
)

// nonsense is what a broken rank may say: numbers of no rank, host or Comm, in any mixture with those that there are.
type nonsense struct{ *rand.Rand }

func (n nonsense) number() int32 {
	return []int32{-1, 0, 1, 2, 3, 4, -2, 1000, math.MaxInt32, math.MinInt32}[n.IntN(10)]
}

func (n nonsense) record() call.Record {
	return call.Record{Place: n.Uint64() >> n.IntN(64), Seq: n.Uint64(), Count: n.Uint64(), Root: n.number(), Hash: n.Uint32(), Kind: call.Kind(n.IntN(256)), Op: op.Op(n.IntN(256)), State: uint8(n.IntN(256))}
}

func (n nonsense) event(i int) event.Event {
	e := event.Event{Comm: uint64(n.IntN(3)), Peer: n.number(), From: n.number(), Node: n.number(), Origin: n.number(), Number: uint64(i), Size: n.number(),
		Code: uint8(n.IntN(256)), Stage: event.Stage(n.IntN(4)), Bytes: uint8(n.IntN(256)), Call: n.record(), Theirs: n.record()}
	if n.IntN(2) == 0 {
		e.Code = uint8(1 + n.IntN(int(event.HostClosed)))
	}
	return e
}

func (n nonsense) status() status.Status {
	return status.Status{Comm: uint64(n.IntN(3)), Calls: n.Uint64() >> n.IntN(64), Rank: n.number(), Size: n.number(), World: n.number(), Node: n.number(), Peer: n.number(),
		To: n.number(), For: n.number(), Number: n.Uint64() >> n.IntN(64), Waited: n.Uint32(), Hash: n.Uint32(), Doing: status.Doing(n.IntN(256)), Several: n.IntN(2) == 0,
		Brief: n.IntN(2) == 0, Failed: n.IntN(2) == 0, Call: n.record()}
}

// A rank whose control plane says what makes no sense crashes no other and holds none up: a Comm fails, or goes on.
func TestNonsenseOfANeighbor(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			j := EnterJob(t.Name(), 0)
			s := j.Site(0)
			j.World.Topo, s.Here.Host, s.Here.Procs = group.Topology([]int{0, 1, 2, 3}, 4), PrivateHost(), []int{0}
			var addrs []netip.AddrPort
			for r := range 4 {
				addrs = append(addrs, netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(1+r)))
			}
			j.Net.Addrs = group.BookOf(j.World.Topo, addrs...)
			c := new(Member)
			c.Init(s, group.WorldID, group.Members{Stride: 1}, j.World.Topo, 0, regionOn(t, s, 1), Options{})
			c.Enlist()
			done := make(chan struct{})
			go func() {
				defer close(done)
				n := nonsense{rand.New(rand.NewPCG(seed, 1))}
				for i := range 2000 {
					e, st := n.event(i), n.status()
					var gotE event.Event
					if gotE.Decode(e.Encode(make([]byte, event.Wire))) == nil {
						s.receiveEvent(&gotE, nil)
					}
					var gotS status.Status
					if gotS.Decode(st.Encode(make([]byte, status.Wire))) == nil {
						s.receiveStatus(&gotS, nil, true)
					}
				}
				if f := c.Fate.Failure(); f != nil {
					assert.NotEmpty(t, f.Error())
				}
				j.Remove(c)
				j.Leave()
			}()
			select {
			case <-done:
			case <-time.After(time.Minute):
				require.Fail(t, "it is held up")
			}
		})
	}
}
