package ccltest

import (
	"context"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// World runs the job in virtual time, as VirtualTime does, and connects its hosts by a network in memory. Each host is
// one process of that job. What happens at random follows from seed. The function befall, unless it is nil, runs
// beside the ranks: it delays, cuts and resets, and stops and kills hosts. Its context ends when the ranks are done.
//
// What a rank of a host that has been killed reports is ignored: its goroutines stand still, and go on once all others
// are done. A test that fails prints the last events on the network.
//
// World needs a *testing.T. The context of a rank's TB says which host it is on: NewComm and what else dials or
// listens must be given it, or one made from it.
func World(seed uint64, link simnet.Link, befall func(ctx context.Context, n *simnet.Net)) Option {
	return func(w *world) { w.virtual, w.sim = true, &simulated{seed: seed, link: link, befall: befall} }
}

// simulated is what World asks for.
type simulated struct {
	seed   uint64
	link   simnet.Link
	befall func(ctx context.Context, n *simnet.Net)
	net    *simnet.Net
}

// outliving is how long what a Close leaves behind may take to end.
const outliving = 15 * time.Second

// begin makes the network. tell logs the last events on the network, if the test has failed.
func (s *simulated) begin(t testing.TB, hosts int) (tell func()) {
	s.net = simnet.New(s.seed, hosts, s.link)
	return func() {
		if t.Failed() {
			t.Logf("seed %d: the last events on the network:\n%s", s.seed, strings.Join(s.net.Transcript(), "\n"))
		}
	}
}

// rootPort is where rank 0 of a World listens.
const rootPort = 29500

// secret is that of a World's job.
var secret = []byte("the secret of a world")

// meet joins the job of a World as a process does that knows where rank 0 is.
func (w *world) meet(ctx context.Context, rank int) (*boot.Boot, error) {
	return boot.TCP(ctx, netip.AddrPortFrom(w.host(0).Addr(), rootPort).String(), rank, w.n,
		&boot.TCPOptions{Job: "world", Secret: secret, HostID: w.hostID(rank)})
}

// host is that of a rank, nil without a World.
func (w *world) host(rank int) *simnet.Host {
	switch {
	case w.sim == nil:
		return nil
	case w.hostOf == nil:
		return w.sim.net.Host(0)
	}
	return w.sim.net.Host(w.hostOf(rank))
}

// at is ctx of a rank on that host.
func at(ctx context.Context, h *simnet.Host) context.Context {
	if h == nil {
		return ctx
	}
	return h.Context(ctx)
}

// beside runs befall beside the ranks. It returns once all ranks have left.
func (s *simulated) beside(ctx context.Context, ranks []*rank) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	var befalling sync.WaitGroup
	if s.befall != nil {
		befalling.Go(func() { s.befall(ctx, s.net) })
	}
	for _, r := range ranks {
		for alive := true; alive && !r.host.Ended(); {
			select {
			case <-r.left:
				alive = false
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	end()
	befalling.Wait()
	for i := range s.net.Size() {
		if h := s.net.Host(i); h.Ended() {
			h.Bury()
		} else {
			h.Go()
		}
	}
	for _, r := range ranks {
		<-r.left
	}
	time.Sleep(outliving)
}
