package ccltest

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/internal/goranks"
)

// VirtualTime runs the ranks in a bubble of testing/synctest: time passes only while
// all of them wait, and then at once. A test of what happens after Options.Timeout of
// ten minutes takes milliseconds. It needs a *testing.T, and ranks that are goroutines on
// one host.
func VirtualTime() Option { return func(w *world) { w.virtual = true } }

// Kill ends a rank when it is about to make its nth call. Calls are counted from 1, over all its
// Comms. Faults of one call happen in the order of their options. The other ranks get ErrRankLost, as
// if its process had been killed. The function of the rank ends there by runtime.Goexit; unlike in a
// killed process, its deferred functions run. What the rank reports then is ignored. A call on a Queue,
// and all later calls, fail instead.
func Kill(rank, nth int) Option {
	return disturb(rank, nth, func(r *rankFault, c *cpu.Comm, k *call.Call) *call.Fault {
		r.over.killed.Store(true)
		c.Control().Die(nil)
		if !k.Queued {
			runtime.Goexit()
		}
		return &call.Fault{Code: call.RankLost, Peer: c.Rank(), Err: errors.New("its process ended")}
	})
}

// Stall makes a rank late: when it is about to make its nth call it sleeps for d, or until the
// Comm has failed if d is negative. The rank is alive and so not lost: the others wait, at most for
// Options.Timeout.
func Stall(rank, nth int, d time.Duration) Option {
	return disturb(rank, nth, func(r *rankFault, c *cpu.Comm, _ *call.Call) *call.Fault {
		if d >= 0 {
			r.sleep(d)
			return nil
		}
		for c.Failure() == nil && r.sleep(time.Second) {
		}
		return nil
	})
}

// Partition cuts a rank off from all others when it is about to make its nth call. After
// Options.PeerTimeout of silence each side takes the other for lost: the others name this rank, and
// this rank names one of them.
func Partition(rank, nth int) Option {
	return disturb(rank, nth, func(r *rankFault, c *cpu.Comm, _ *call.Call) *call.Fault {
		silence := c.Control().Group.PeerTimeout()
		if !r.sleep(silence) {
			return nil
		}
		why := fmt.Errorf("its host has been silent for %v", silence)
		f := c.Control().Isolate(why)
		c.Control().Die(why)
		return f
	})
}

// disturbance is what befalls a rank before one of its calls.
type disturbance struct {
	rank, nth int
	happen    func(*rankFault, *cpu.Comm, *call.Call) *call.Fault
}

func disturb(rank, nth int, happen func(*rankFault, *cpu.Comm, *call.Call) *call.Fault) Option {
	return func(w *world) { w.disturbances = append(w.disturbances, disturbance{rank, nth, happen}) }
}

// checkFaults says what is wrong with what the options ask for.
func (w *world) checkFaults(t testing.TB) error {
	for _, d := range w.disturbances {
		switch {
		case d.rank < 0 || d.rank >= w.n:
			return fmt.Errorf("a fault for rank %d; the ranks are 0 to %d", d.rank, w.n-1)
		case d.nth < 1:
			return fmt.Errorf("a fault at call %d; calls are counted from 1", d.nth)
		}
	}
	if !w.virtual {
		return nil
	}
	if _, ok := t.(*testing.T); !ok {
		return fmt.Errorf("VirtualTime needs a *testing.T, not a %T", t)
	}
	if w.processes != nil || w.hosts > 1 && w.sim == nil {
		return errors.New("VirtualTime needs ranks that are goroutines on one host, or a World: network I/O takes real time")
	}
	return nil
}

// inVirtualTime runs f in a bubble, if that was asked for.
func (w *world) inVirtualTime(t testing.TB, f func(testing.TB)) {
	t.Helper()
	if !w.virtual {
		f(t)
		return
	}
	synctest.Test(t.(*testing.T), func(t *testing.T) {
		if w.sim != nil {
			defer w.sim.begin(t, max(w.hosts, 1))()
		}
		f(t)
	})
}

// disturbed is b, if its rank is to go wrong such that it does.
func (w *world) disturbed(b ccl.Bootstrap, r *rank) ccl.Bootstrap {
	for _, d := range w.disturbances {
		if d.rank == b.Rank() {
			return &rankFault{Full: goranks.Full{Bootstrap: b}, world: w, over: r}
		}
	}
	return b
}

// rankFault is the Bootstrap of a rank, and counts its calls.
type rankFault struct {
	goranks.Full
	world *world
	over  *rank
	calls atomic.Int64 // some are made on the goroutine of a HostStream
}

// sleep is false if the test has ended meanwhile.
func (r *rankFault) sleep(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-r.over.ctx.Done():
		return false
	}
}

// BeforeCall is called by the engine before each call of the rank.
func (r *rankFault) BeforeCall(c *cpu.Comm, k *call.Call) *call.Fault {
	n := r.calls.Add(1)
	for _, d := range r.world.disturbances {
		if d.rank == r.Rank() && int64(d.nth) == n {
			if f := d.happen(r, c, k); f != nil {
				return f
			}
		}
	}
	return nil
}
