package ccl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
)

// launchers are what build tags add to boot.Env: each says whether it knows who started this
// process, and then joins the job its own way. The first that knows is asked.
var launchers []func(ctx context.Context) (b Bootstrap, known bool, err error)

// Launched returns the bootstrap that Join uses: in a build with the tag mpi and under a launcher
// with MPI, MPI's own; otherwise boot.Env's. Call done when the Comms have been made or could not
// be made. MPI ends on no rank before all have called it, so in a job with spares, which wait in
// NewComm, use Join.
func Launched(ctx context.Context) (b Bootstrap, done func(), err error) {
	if err := noContext(ctx, nil, "NewComm"); err != nil {
		return nil, nil, err
	}
	for _, launcher := range launchers {
		b, known, err := launcher(ctx)
		if !known {
			continue
		}
		if err != nil {
			return nil, nil, bootError(err)
		}
		if c, ok := b.(io.Closer); ok {
			return b, func() { c.Close() }, nil
		}
		return b, func() {}, nil
	}
	e, err := boot.Env(ctx)
	if err != nil {
		return nil, nil, bootError(err)
	}
	return e, func() { e.Close() }, nil
}

// Join returns the Comm of all ranks of the job; most programs need no other call to start. It
// learns from the environment which launcher started this process, its rank and the number of
// ranks, and connects to the other ranks. Under no launcher the job has one rank.
//
// Where GOCCL_HALL or Options.Store names a store, and the job has begun, this process comes late: it
// waits there until the job takes it in by [Grow], for as long as ctx lets it. ErrUnused says that the
// job ended without it.
func Join(ctx context.Context, o *Options) (*Comm, error) {
	if err := noContext(ctx, nil, "Join"); err != nil {
		return nil, err
	}
	var own Options
	if o != nil {
		own = *o
	}
	if own.Spares == 0 { // of the job that the launcher has started, and of no other that this process may have
		own.Spares = environ.Spares.Get()
	}
	late, err := own.comesLate(ctx)
	if err != nil {
		return nil, storeError(ctx, "Join", -1, err)
	}
	if late {
		return enter(ctx, own, environ.Newcomer.Get())
	}
	joins, joined, over := unlessBegun(ctx, own.Store)
	defer over(nil)
	c, err := joinStarted(ctx, joins, &own, joined)
	if err != nil && isBegun(ctx, joins, own.Store, err) { // another job has begun in the store, at the same time
		return enter(ctx, own, "")
	}
	return c, err
}

// joinStarted is Join of a rank of the job that the launcher has started. Until all ranks have come, and
// it calls joined, joins limits it, and then ctx.
func joinStarted(ctx, joins context.Context, o *Options, joined func()) (*Comm, error) {
	b, done, err := Launched(joins)
	if err != nil {
		return nil, err
	}
	joined()
	done = sync.OnceFunc(done) // a spare has met the others long before it has a Comm
	defer done()
	return newWorld(ctx, b, settingsOf(o), done, nil)
}

// Alone returns a Comm of this process alone, by which a job that has begun goes on in the store of o, or of
// GOCCL_HALL: it can [Grow]. It is for the last rank of a job, such as one that the others have given up while it
// alone had the state. Nothing here keeps other ranks of that job from going on, too: package train/elastic decides
// which do.
func Alone(ctx context.Context, o *Options) (*Comm, error) {
	if err := noContext(ctx, nil, "Alone"); err != nil {
		return nil, err
	}
	s := settingsOf(o)
	if s.Store == nil {
		var err error
		if s.Store, err = boot.EnvStore(); err != nil {
			return nil, storeError(ctx, "Alone", 0, err)
		}
	}
	return newWorld(ctx, boot.Local(1)[0], s, func() {}, &arrival{secret: auth.ByKernel(), then: ctx,
		settle: func(*cpu.Comm) *call.Fault { return nil }})
}

// NewComm joins the job that b describes. Within the time of ctx it returns a Comm on all ranks, or
// an error on all ranks. If a rank fails after that was decided, the Comm has already failed when
// NewComm returns it.
//
// What the ranks say to each other over TCP is protected by the job's secret: that of b, or else of
// GOCCL_SECRET_FILE or GOCCL_SECRET. A job that other hosts can reach and that has none warns once;
// GOCCL_REQUIRE_SECRET=1 refuses it. See docs/secret.md.
//
// In a job with Options.Spares the Comm is that of the workers, and a spare waits here until it has
// the number of a rank that was lost, for as long as ctx lets it. ErrUnused says that the job ended
// without it.
func NewComm(ctx context.Context, b Bootstrap, o *Options) (*Comm, error) {
	if err := noContext(ctx, nil, "NewComm"); err != nil {
		return nil, err
	}
	return newWorld(ctx, b, settingsOf(o), func() {}, nil)
}

// newWorld is NewComm. It calls met once b has done its part, on a spare that is to wait. in is not
// nil where the job has grown.
func newWorld(ctx context.Context, b Bootstrap, s settings, met func(), in *arrival) (*Comm, error) {
	if absent(b) {
		return nil, &Error{Code: ErrArgument, Op: "NewComm", Rank: -1, Peer: -1,
			Err: errors.New("the Bootstrap is nil; Join finds one")}
	}
	refuse := func(code Code, err error) error {
		if r, ok := b.(interface{ Refuse(why error) }); ok {
			r.Refuse(err)
		}
		return &Error{Code: code, Op: "NewComm", Rank: b.Rank(), Peer: -1, Err: err}
	}
	var err error
	s.links = new(knownLinks)
	if s.Options, err = s.settled(); err != nil {
		return nil, refuse(ErrArgument, err)
	}
	misspelt, err := environ.Check(os.Environ())
	if err != nil {
		return nil, refuse(ErrArgument, err)
	}
	for _, m := range misspelt {
		if b.Rank() == 0 {
			s.Log.Warn("ccl: " + m.String())
		}
	}
	algorithms := environ.Algo.Get()
	tab, err := algo.ParseOverride(algorithms)
	if err != nil {
		return nil, refuse(ErrArgument, err)
	}
	if h, ok := b.(interface{ HostID() string }); ok {
		s.hostID = h.HostID()
	}
	host := hostName(s.hostID)
	if code, err := s.checkSpares(b.Size()); err != nil {
		return nil, refuse(code, err)
	}
	if s.asked == nil {
		asked := s.Options
		s.asked = &asked
	}
	secret, err := jobSecret(b, in)
	if err != nil {
		return nil, refuse(secretCode(err), err)
	}
	wire, _ := auth.ParseWire(s.Wire) // which is settled
	world := func(eo plane.Options) (*cpu.Comm, *call.Fault) {
		terms := join.Terms{Settings: s.agreed(algorithms, secret), Wire: wire, Secret: secret}
		if in != nil {
			terms.From = in.from
		} else if s.Store != nil {
			terms.Found = s.found
		}
		c, f := cpu.Join(ctx, b, terms, eo)
		if f == nil {
			tellOpen(c, &s.Options, b, secret, in)
		}
		return c, f
	}
	if s.Spares > 0 || in != nil && !isPlain(s.Spares, s.Backend) {
		c, f := newReserve(ctx, s, tab, host, b.Rank(), b.Size(), world, func() { met(); s.begun(ctx, in) }, in)
		if f != nil {
			return nil, newCommError(b.Rank(), f)
		}
		return c, nil
	}
	c, f := newComm(s, tab, host, cmp.Or(s.Name, worldName), world, func(eng *cpu.Comm) (*library, *call.Fault) {
		if in != nil {
			if f := in.settle(eng); f != nil {
				return nil, f
			}
		}
		return openLibrary(ctx, eng, &s.Options)
	})
	if f != nil {
		return nil, newCommError(b.Rank(), f)
	}
	if s.Order == OrderLinks || in != nil && in.links {
		within := ctx
		if in != nil {
			within = in.then
		}
		if err := orderByLinks(within, c, s.older); err != nil && c.Err() == nil {
			c.Close()
			return nil, err
		}
	}
	if in != nil {
		c.opt.came = &arrivals{comm: c, fresh: in.fresh}
	}
	tellApart(c)
	s.begun(ctx, in)
	return c, nil
}

// tellApart warns where ranks of one host share no memory. c is the Comm of all ranks of the job.
func tellApart(c *Comm) {
	if why := c.eng.Control().Share.Apart(); why != "" {
		c.opt.Log.Warn(fmt.Sprintf("ccl: rank %d: ranks that appear to be on this host cannot share memory, and use TCP: %s", c.Rank(), why))
	}
}

// hostName is the name of this rank's host: its id, if it has one, as the hosts that one machine
// acts as have; else the kernel's name.
func hostName(id string) string {
	if id != "" {
		return id
	}
	name, _ := os.Hostname()
	name, _, _ = strings.Cut(name, ".")
	return name
}

// newCommError is f, which kept a Comm from being made.
func newCommError(rank int, f *call.Fault) *Error {
	var be *boot.Error
	if errors.As(f.Err, &be) {
		return bootError(be)
	}
	return &Error{Code: Code(f.Code), Op: "NewComm", Rank: rank, Peer: f.Peer, Missing: f.Missing, Err: f.Err}
}
