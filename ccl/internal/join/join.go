package join

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/shm"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/plain"
	"github.com/goccl/goccl/internal/simhost"
)

// Bootstrap is what a launcher supplies. It is ccl.Bootstrap; the other methods of
// boot.Boot (Addr, HostID, Watch) are used where there.
type Bootstrap interface {
	Rank() int
	Size() int
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// maker makes this rank's end of the Comm of all ranks, whose region is at off. It begins later, or is abandoned.
type maker func(at *plane.Site, topo algo.Topology, rank int, off uint64) (*plane.Member, error)

// Terms are what the ranks of a job agree on.
type Terms struct {
	Settings string      // the version and the options that must agree, as name=value pairs separated by semicolons
	Wire     auth.Wire   // one of these: how data travel between hosts
	Secret   auth.Secret // the job's: it differs only by mistake

	// of rank 0, where the job is the first in a store: ErrBegun if another was; nil: it asks no store
	Found func(context.Context) error

	// the memory of this rank's host in the job that this one grows out of, nil if there is none; it
	// may differ
	From *shm.Host
}

// Join makes the Comm of all ranks of a job; peer is Options.PeerTimeout.
func Join(ctx context.Context, b Bootstrap, terms Terms, peer time.Duration, end maker) *call.Fault {
	rank, size := b.Rank(), b.Size()
	if size < 1 || rank < 0 || rank >= size {
		return call.NewFault(call.Argument, -1, "the bootstrap says rank %d of %d", rank, size)
	}
	if terms.Secret.IsZero() {
		return call.NewFault(call.Backend, -1, "the job's secret is not settled")
	}
	id := ""
	if s, ok := b.(interface{ HostID() string }); ok {
		id = s.HostID()
	}
	all, err := b.AllGather(ctx, newHello(simhost.Of(ctx), terms.Settings, id, rank, terms.Found != nil))
	if err != nil {
		return bootFault(err)
	}
	switch odd, f := compare(all, size); {
	case f != nil:
		return f
	case odd >= 0:
		return differ(ctx, b, odd, terms.Settings)
	}
	j := plane.EnterJobAt(simhost.Of(ctx), hex.EncodeToString(hello(all[0]).seed()), peer)
	r := &exchanges{boot: b, all: all, rank: rank, wire: terms.Wire, secret: terms.Secret, found: terms.Found,
		from: terms.From}
	_ = j.Once("secret", func() error { j.Net.Secret = r.secret; return nil })
	_, f := join(ctx, j, r, end)
	if f != nil {
		j.Leave()
	}
	return f
}

// join runs the steps after the first exchange. Each is done once per process. What can fail comes
// before a verdict that all hear: so all ranks get a Comm, or all an error.
func join(ctx context.Context, j *plane.Job, r *exchanges, end maker) (*plane.Member, *call.Fault) {
	c, said, f := share(ctx, j, r, end)
	if f != nil {
		return nil, f
	}
	_ = j.Once("monitor", func() error { j.StartMonitor(); return nil })
	if j.World.Topo.Nodes() > 1 {
		err := j.Once("addresses", func() error { return learn(j, r.all, said) })
		if err == nil {
			err = c.Site.Job.Once(fmt.Sprint("neighbors ", c.Site.Here.Node), func() error {
				together, stop := whileAll(ctx, r.boot)
				defer stop()
				together, end := beforeVerdict(together, r.boot)
				defer end()
				return c.Site.JoinNeighbors(together)
			})
		}
		if _, f := r.verdict(ctx, err, nil); f != nil {
			giveUp(c, f)
			return nil, f
		}
	}
	if hello(r.all[0]).founds() {
		var err error
		if r.rank == 0 {
			err = r.found(ctx)
		}
		said, f := r.verdict(ctx, err, nil)
		switch {
		case f != nil:
			giveUp(c, f)
			return nil, f
		case said[0][0] == begun:
			c.Abandon()
			return nil, call.NewFault(call.Argument, -1, "%w", ErrBegun)
		}
	}
	c.Enlist()
	return c, nil
}

// giveUp drops c, which is not to begin, since a verdict has failed with f. Where the bootstrap has
// failed under it, and no rank has said so in the verdict itself, others may have got it whole, and
// have a Comm: that fails with f.
func giveUp(c *plane.Member, f *call.Fault) {
	if f.Peer < 0 {
		c.Fail(f)
	}
	c.Abandon()
}

// ErrBegun is the error on all ranks of a job that is to be the first in its store, and is not.
var ErrBegun = errors.New("another job has begun in this store; a process that comes later waits for its Grow, in Join")

// exchanges are those of a joining rank with all others.
type exchanges struct {
	boot   Bootstrap
	all    [][]byte // the hellos
	rank   int
	wire   auth.Wire
	secret auth.Secret
	found  func(context.Context) error
	from   *shm.Host
}

// What a verdict's first byte says. Text follows, but after well.
const (
	well byte = iota
	failed
	unshared // this process cannot share memory with its host: see ErrCannotShare
	begun    // of rank 0: see ErrBegun
	refused  // as failed, for what the environment of this process says
)

// verdict tells all ranks err, or more where that is nil, and returns what they have told.
func (r *exchanges) verdict(ctx context.Context, err error, more []byte) ([][]byte, *call.Fault) {
	inject.At("join.verdict")
	msg := append([]byte{well}, more...)
	if err != nil {
		msg = append([]byte{failed}, err.Error()...)
		switch {
		case errors.Is(err, watch.ErrCannotShare):
			msg[0] = unshared
		case errors.Is(err, ErrBegun):
			msg[0] = begun
		case errors.Is(err, tcp.ErrSelection):
			msg[0] = refused
		}
	}
	said, err2 := r.boot.AllGather(ctx, msg)
	if err2 != nil {
		return nil, bootFault(err2)
	}
	if len(said) != len(r.all) {
		return nil, call.NewFault(call.Backend, -1, "the bootstrap gathered %d values from %d ranks", len(said), len(r.all))
	}
	for o, m := range said {
		if len(m) == 0 || m[0] == failed || m[0] == refused {
			code := call.Backend
			if len(m) > 0 && m[0] == refused {
				code = call.Argument
			}
			return nil, call.NewFault(code, o, "rank %d: %s", o, plain.Text(string(m[min(1, len(m)):])))
		}
	}
	return said, nil
}

// whileAll is ctx for what takes all ranks: it also ends when one of them is lost, which the next AllGather then says.
func whileAll(ctx context.Context, b Bootstrap) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if w, ok := b.(interface{ Watch() <-chan struct{} }); ok {
		lost := w.Watch()
		go func() {
			defer cancel()
			select {
			case <-lost:
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// forVerdict is how long before the end of the next AllGather, at most, what a rank has to say in it is to be known.
const forVerdict = 5 * time.Second

// beforeVerdict is ctx for what the next AllGather tells: it ends early enough for all to hear why it has
// failed, before they hear that the time is over.
func beforeVerdict(ctx context.Context, b Bootstrap) (context.Context, context.CancelFunc) {
	left, limited := lived.Left(ctx)
	if l, ok := b.(interface{ Limit() time.Duration }); ok && !limited {
		left, limited = l.Limit(), true
	}
	if !limited || left <= 0 {
		return ctx, func() {}
	}
	return lived.Within(ctx, left-min(left/4, forVerdict))
}

// openTCP begins to listen at the interface that reaches the other hosts.
func openTCP(j *plane.Job, r *exchanges) error {
	if at := j.Net.At; at != nil {
		return j.Listen("", at.Addr(), r.secret, r.wire)
	}
	if told := environ.Advertise.Get(); told.IsValid() {
		return j.Listen(told.String(), inet.Any(told), r.secret, r.wire)
	}
	var toward netip.Addr
	if s, ok := r.boot.(interface{ Addr() netip.Addr }); ok {
		toward = s.Addr()
	}
	addr, name, err := tcp.Pick(environ.SocketIfname.Get(), toward)
	if err != nil {
		return err
	}
	return j.Listen(name, addr, r.secret, r.wire)
}

// learn keeps the addresses at which ranks of other hosts are reached.
func learn(j *plane.Job, all, said [][]byte) error {
	addrs := make([]netip.AddrPort, len(said))
	for r, m := range said {
		if err := addrs[r].UnmarshalBinary(m[1:]); err != nil {
			return fmt.Errorf("rank %d gave no address: %w", r, err)
		}
	}
	if last := len(addrs) - 1; inject.Wrong("join.learn") {
		addrs[last] = addrs[0]
	}
	if err := oneEach(all, addrs); err != nil {
		return err
	}
	j.Net.Addrs = group.BookOf(j.World.Topo, addrs...)
	return nil
}

// oneEach returns an error if two hosts give one address, as those do of which each has a bridge of
// containers: what either sends there stays on the host, and may find a rank that it was not meant for. Hosts
// that GOCCL_HOSTID has named may be one.
func oneEach(all [][]byte, addrs []netip.AddrPort) error {
	first := map[netip.Addr]int{}
	for r, at := range addrs {
		o, known := first[at.Addr()]
		if !known {
			first[at.Addr()] = r
			continue
		}
		if a, b := hello(all[o]), hello(all[r]); a.host() != b.host() && !a.named() && !b.named() {
			return fmt.Errorf("the hosts of ranks %d and %d have one address, %v, so neither reaches the other there: select an interface whose address no other host has with %s",
				o, r, at.Addr(), environ.SocketIfname.Name)
		}
	}
	return nil
}

// bootFault is an error of the bootstrap.
func bootFault(err error) *call.Fault {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &call.Fault{Code: call.Timeout, Peer: -1, Err: err}
	case errors.Is(err, context.Canceled):
		return &call.Fault{Code: call.Canceled, Peer: -1, Err: err}
	}
	return &call.Fault{Code: call.Backend, Peer: -1, Err: err}
}
