package ccl

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/algo"
	"github.com/goccl/goccl/ccl/internal/cpu"
)

// Bootstrap is what a launcher supplies: who I am, and one way to swap bytes. It is
// needed only inside NewComm. [boot.TCP], [boot.File], [boot.Local] and [boot.Env]
// provide it; so does anything with these three methods. Where it also has
//
//	Secret() []byte   // known to the ranks of the job alone: guards data connections
//	Addr() netip.Addr // of the interface that reaches the other hosts
//	HostID() string   // ranks with different ones count as on different hosts
//
// they are used.
type Bootstrap interface {
	Rank() int
	Size() int
	// AllGather returns every rank's mine, indexed by rank.
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// Join is the one call most programs make: it finds out from the environment who
// this process is (launcher, rank, size), bootstraps, and returns the Comm of all
// ranks. Under no launcher it is a job of one rank.
func Join(ctx context.Context, o *Options) (*Comm, error) {
	b, err := boot.Env(ctx)
	if err != nil {
		return nil, bootError(err)
	}
	defer b.Close()
	return NewComm(ctx, b, o)
}

// NewComm joins the job described by b. It returns within ctx on every rank, with a
// Comm on all of them or an error on all of them; if a rank fails after the verdict,
// the Comm starts out failed.
func NewComm(ctx context.Context, b Bootstrap, o *Options) (*Comm, error) {
	refuse := func(code Code, err error) error {
		return &Error{Code: code, Op: "NewComm", Rank: b.Rank(), Peer: -1, Err: err}
	}
	s, err := o.settled()
	if err != nil {
		return nil, refuse(ErrArgument, err)
	}
	algorithms := os.Getenv("GOCCL_ALGO")
	tab, err := algo.ParseOverride(algorithms)
	if err != nil {
		return nil, refuse(ErrArgument, err)
	}
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	c, f := newComm(s, tab, host, func(eo cpu.Options) (*cpu.Comm, *cpu.Fault) {
		return cpu.Join(ctx, b, s.agreed(algorithms), eo)
	})
	if f != nil {
		return nil, newCommError(b.Rank(), f)
	}
	return c, nil
}

// newCommError is f, which kept a Comm from being made.
func newCommError(rank int, f *cpu.Fault) *Error {
	var be *boot.Error
	if errors.As(f.Err, &be) {
		return bootError(be)
	}
	return &Error{Code: Code(f.Code), Op: "NewComm", Rank: rank, Peer: f.Peer, Missing: f.Missing, Err: f.Err}
}

// Split partitions c by color, ordered by key then by old rank, as MPI_Comm_split.
// It is collective over c. A negative color gets a nil Comm.
func (c *Comm) Split(ctx context.Context, color, key int) (*Comm, error) {
	c.calls++
	a := &args{kind: KindSplit, root: -1}
	if c.closed.Load() {
		return nil, c.refuse(a, ErrClosed, nil)
	}
	if err := c.drain(ctx); err != nil {
		return nil, c.endedBy(err, a)
	}
	c.seq++
	r := &c.ring[c.seq%ringCalls]
	k := &c.call
	c.fill(k, a, c.seq, 0)
	k.State, k.Start = uint8(Running), c.eng.Now()
	*r = k.Record
	child, f := newComm(c.opt, c.tab, c.host, func(eo cpu.Options) (*cpu.Comm, *cpu.Fault) {
		return c.eng.Split(ctx, k, color, key, eo)
	})
	r.End = c.eng.Now()
	if f != nil {
		r.State = uint8(Failed)
		if c.eng.Failure() != nil {
			return nil, c.errorIn(r)
		}
		return nil, &Error{Code: Code(f.Code), Op: "Split", Rank: c.Rank(), Peer: f.Peer, Err: f.Err}
	}
	r.State = uint8(Complete)
	return child, nil
}
