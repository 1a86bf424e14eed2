package plane

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
)

// Bootstrap is what a launcher supplies. It is ccl.Bootstrap; the other methods of
// boot.Boot (Secret, Addr, HostID, Watch) are used where there.
type Bootstrap interface {
	Rank() int
	Size() int
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// process tells the processes of a job apart.
var process = func() (t [16]byte) {
	rand.Read(t[:])
	return t
}()

// hello is what ranks tell each other first:
//
//	8 bytes magic | 8 hash of version and options | 16 seed of the job's id |
//	16 host | 16 process | the version and options, to name the one that differs
const (
	helloMagic = "goccl\x00\x00\x01"
	helloHead  = 8 + 8 + 16 + 16 + 16
)

type hello []byte

func (h hello) valid() bool      { return len(h) >= helloHead && string(h[:8]) == helloMagic }
func (h hello) options() []byte  { return h[8:16] }
func (h hello) seed() []byte     { return h[16:32] }
func (h hello) host() [16]byte   { return [16]byte(h[32:48]) }
func (h hello) process() []byte  { return h[48:64] }
func (h hello) settings() string { return string(h[helloHead:]) }

func newHello(settings, hostID string) hello {
	h := make(hello, 0, helloHead+len(settings))
	h = append(h, helloMagic...)
	sum := sha256.Sum256([]byte(settings))
	h = append(h, sum[:8]...)
	var seed [16]byte
	rand.Read(seed[:])
	h = append(h, seed[:]...)
	if hostID == "" {
		hostID = shm.HostIdentity()
	} else {
		hostID = "named " + hostID
	}
	key := sha256.Sum256([]byte(hostID))
	if !shm.CanShare {
		key = sha256.Sum256(process[:])
		if strings.HasPrefix(hostID, "named ") {
			key = sha256.Sum256(append(process[:], hostID...))
		}
	}
	h = append(h, key[:16]...)
	h = append(h, process[:]...)
	return append(h, settings...)
}

// maker makes this rank's end of the Comm of all ranks, whose region is at off. It begins later, or is abandoned.
type maker func(at *Site, topo algo.Topology, rank int, off uint64) (*Member, error)

// Join makes the Comm of all ranks of a job. settings are the version and the options that must agree, as name=value pairs
// separated by semicolons; peer is Options.PeerTimeout.
func Join(ctx context.Context, b Bootstrap, settings string, peer time.Duration, end maker) *call.Fault {
	rank, size := b.Rank(), b.Size()
	if size < 1 || rank < 0 || rank >= size {
		return call.NewFault(call.Argument, -1, "the bootstrap says rank %d of %d", rank, size)
	}
	id := ""
	if s, ok := b.(interface{ HostID() string }); ok {
		id = s.HostID()
	}
	all, err := b.AllGather(ctx, newHello(settings, id))
	if err != nil {
		return bootFault(err)
	}
	if f := compare(all, size); f != nil {
		return f
	}
	j := EnterJob(hex.EncodeToString(hello(all[0]).seed()), peer)
	_, f := j.join(ctx, b, all, end)
	if f != nil {
		j.Leave()
	}
	return f
}

// compare finds the rank whose version or options are not those of rank 0.
func compare(all [][]byte, size int) *call.Fault {
	if len(all) != size {
		return call.NewFault(call.Backend, -1, "the bootstrap gathered %d values from %d ranks", len(all), size)
	}
	for r, h := range all {
		if !hello(h).valid() {
			return call.NewFault(call.Version, r, "rank %d runs something else than this goccl, or another version of it", r)
		}
		if !bytes.Equal(hello(h).options(), hello(all[0]).options()) {
			return call.NewFault(call.Version, r, "rank %d differs from rank 0: %s", r, firstDifference(hello(all[0]).settings(), hello(h).settings()))
		}
	}
	return nil
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, ";"), strings.Split(b, ";")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("%s there, %s on rank 0", y[i], x[i])
		}
	}
	return "a different number of options"
}

// join runs the steps after the first exchange. Each is done once per process. What can fail comes before a verdict that
// all hear: so all ranks get a Comm, or all an error.
func (j *job) join(ctx context.Context, b Bootstrap, all [][]byte, end maker) (*Member, *call.Fault) {
	r := &rounds{boot: b, all: all, rank: b.Rank()}
	c, said, f := j.share(ctx, r, end)
	if f != nil {
		return nil, f
	}
	j.last.do(func() error { j.start(); return nil })
	if j.Topo.Nodes() > 1 {
		err := j.learned.do(func() error { return j.learn(said) })
		if err == nil {
			err = c.Site.plane.do(func() error {
				together, stop := whileAll(ctx, b)
				defer stop()
				return c.Site.joinPlane(together)
			})
		}
		if _, f := r.verdict(ctx, err, nil); f != nil {
			c.Abandon()
			return nil, f
		}
	}
	c.Enlist()
	return c, nil
}

// rounds are the exchanges of a joining rank with all others.
type rounds struct {
	boot Bootstrap
	all  [][]byte // the hellos
	rank int
}

// What a verdict's first byte says. Text follows, but after well.
const (
	well byte = iota
	failed
	unshared // this process cannot share memory with its host: see errCannotShare
)

// verdict tells all ranks err, or more where that is nil, and returns what they have told.
func (r *rounds) verdict(ctx context.Context, err error, more []byte) ([][]byte, *call.Fault) {
	inject.At("join.verdict")
	msg := append([]byte{well}, more...)
	if err != nil {
		msg = append([]byte{failed}, err.Error()...)
		if errors.Is(err, errCannotShare) {
			msg[0] = unshared
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
		if len(m) == 0 || m[0] == failed {
			return nil, call.NewFault(call.Backend, o, "rank %d: %s", o, m[min(1, len(m)):])
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

// openTCP begins to listen at the interface that reaches the other hosts.
func (j *job) openTCP(b Bootstrap) error {
	var secret []byte
	var toward netip.Addr
	if s, ok := b.(interface{ Secret() []byte }); ok {
		secret = s.Secret()
	}
	if s, ok := b.(interface{ Addr() netip.Addr }); ok {
		toward = s.Addr()
	}
	addr, name, err := tcp.Pick(os.Getenv("GOCCL_SOCKET_IFNAME"), toward)
	if err != nil {
		return err
	}
	j.iface = name
	j.TCP, err = tcp.Listen(j.id, secret, addr)
	return err
}

// learn keeps the addresses at which ranks of other hosts are reached.
func (j *job) learn(said [][]byte) error {
	j.Addrs = make([]netip.AddrPort, len(said))
	for r, m := range said {
		if err := j.Addrs[r].UnmarshalBinary(m[1:]); err != nil {
			return fmt.Errorf("rank %d gave no address: %w", r, err)
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
