package ccl

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
)

// Version is the version of this module. Between two releases it is that of the next one, with
// "-dev". All ranks of a job must run the same.
const Version = "0.4.0-dev"

// Options tune a Comm. The zero value holds the defaults. All fields except Device, OnFailure,
// OnCall, Log, Name and Store must be the same on all ranks; otherwise NewComm fails and names those
// that differ.
type Options struct {
	// Backend names the engine that moves data beside the CPU engine, which every Comm has for
	// control, Barrier and host slices. "" takes the compiled-in engine whose device every rank
	// has, if there is one. "cpu" takes none.
	Backend string
	// Staged moves host slices through the device's library as well, by copies in device memory.
	// That is of use where the library knows a network between the hosts that TCP does not reach as
	// fast. Without it the CPU engine moves host slices.
	Staged bool
	// Device is the index of this rank's device. nil takes the rank's local number among the
	// visible devices.
	Device *int
	// Timeout is the longest time that one call may take. 0 means 10 minutes, a negative value no
	// limit. Time for which the process is stopped does not count.
	Timeout time.Duration
	// PeerTimeout is the silence after which a rank counts as lost. 0 means 5 seconds, a negative
	// value never. NewComm refuses one of less than a second.
	PeerTimeout time.Duration
	// Check says how thoroughly mismatched calls are looked for. The default is CheckAsync.
	Check Check
	// RankOrder reduces strictly in rank order, which gives the bits of adding rank by rank. It is
	// slower, and for the CPU engine only. docs/types.md has what it means for 16-bit floats.
	RankOrder bool
	// OnFailure is called once, before any call returns the failure. It may Close the Comm, but
	// not make calls on it. A call waits for OnFailure to return, but no longer than its context
	// and Timeout allow.
	OnFailure func(*Error)
	// OnCall is called after every call on host memory, on the goroutine of that call, and after
	// every call on a device, on a goroutine of its own and in order. It is meant for metrics.
	// Nothing waits for a device because of OnCall. The Comm learns that a stream has passed a call
	// from a Wait, from a Synchronize of the stream, or by looking every 10 ms; what is still under
	// way when the Comm is closed is not told. A call that is captured into a graph is not told by
	// itself: each launch of the graph is. Of launches under way at once only the last 16 are told.
	OnCall func(Observation)
	// Log receives what the Comm reports. nil sends warnings and errors to slog.Default(), or what
	// has at least the level that GOCCL_LOG names: only errors with "error" or "quiet", and everything
	// with "debug" or "all".
	Log *slog.Logger
	// Wire says how the CPU engine's data travel between hosts: "plain"; "auth", which finds out
	// if they were changed on the way; or "encrypt", which also hides them. "" takes what
	// GOCCL_WIRE says, and "plain" without it. It is the same on all ranks, and all but "plain" need
	// the job's secret; docs/secret.md has what each costs.
	Wire string
	// Hints tune the library of the backend.
	Hints Hints
	// Name is what errors and reports call the Comm, as SetName sets it. "" means "world" for the
	// Comm of NewComm, and the parent's name with the color for a Comm of Split.
	Name string
	// Spares is how many of the job's ranks wait until one is needed: the last ones. NewComm gives
	// the others, the workers, a Comm of their own, whose Replace gives a spare the place of a rank
	// that is lost. With 0, Join takes what GOCCL_SPARES says, and none without it; a negative value is
	// none. See docs/elastic.md.
	Spares int

	// Store is where processes that start late wait for this job to take them in, by Grow. nil is what
	// GOCCL_HALL names under Join, and none under NewComm. It is not compared. A Comm of Split has none.
	Store boot.Store

	asked  *Options // as the job was started with them, for the one that Grow makes; nil in a Comm of Split
	hostID string   // what the Bootstrap said
	born   int64    // the generation in which the job has grown to this one; 0 for the first
	// whose pool it is, which nobody outside this package sees: its failure is told where it is dealt
	// with; nil for all other Comms
	pool *reserve
}

const (
	defaultTimeout     = 10 * time.Minute
	defaultPeerTimeout = 5 * time.Second
	leastPeerTimeout   = time.Second // a shorter silence is that of a rank which waits for a processor
)

// settled is o with its defaults filled in.
func (o *Options) settled() (Options, error) {
	var s Options
	if o != nil {
		s = *o
	}
	s.Timeout = cmp.Or(s.Timeout, defaultTimeout)
	s.PeerTimeout = cmp.Or(s.PeerTimeout, defaultPeerTimeout)
	s.Log = cmp.Or(s.Log, defaultLog(environ.Log.Get()))
	if err := checkBackend(s.Backend); err != nil {
		return s, err
	}
	s.Wire = cmp.Or(s.Wire, environ.Wire.Get(), auth.Plain.String())
	if _, err := auth.ParseWire(s.Wire); err != nil {
		return s, fmt.Errorf("Options.Wire is %w", err)
	}
	if err := s.Hints.check(); err != nil {
		return s, fmt.Errorf("Options.Hints: %w", err)
	}
	s.Spares = max(s.Spares, 0)
	switch {
	case s.Check > CheckOff:
		return s, errCheck(s.Check)
	case s.PeerTimeout > 0 && s.PeerTimeout < leastPeerTimeout:
		return s, fmt.Errorf("Options.PeerTimeout is %v; it is at least %v, 0 for %v, or negative for never", s.PeerTimeout,
			leastPeerTimeout, defaultPeerTimeout)
	}
	return s, nil
}

// patience is how long a rank waits for the others as it closes its Comm.
func (o *Options) patience() time.Duration {
	if o.PeerTimeout < 0 {
		return defaultPeerTimeout
	}
	return o.PeerTimeout
}

func errCheck(k Check) error {
	return fmt.Errorf("Check is %d; the levels are CheckAsync, CheckStrict and CheckOff", k)
}

// agreed lists what must agree on all ranks, as name=value pairs.
func (o *Options) agreed(algorithms string, secret auth.Secret) string {
	built := "" // what is chosen from where nothing is named: programs built with other tags would choose otherwise
	if o.Backend == "" {
		built = strings.Join(Backends(), ",")
	}
	return fmt.Sprintf("version %s;Backend=%q;build tags=%q;Staged=%v;Timeout=%v;PeerTimeout=%v;Check=%v;RankOrder=%v;Wire (GOCCL_WIRE)=%q;Hints=%q;GOCCL_ALGO=%q;Spares (GOCCL_SPARES)=%d;secret (GOCCL_SECRET_FILE)=%s",
		Version, o.Backend, built, o.Staged, o.Timeout, o.PeerTimeout, o.Check, o.RankOrder, o.Wire, o.Hints.String(),
		algorithms, o.Spares, hasSecret(secret))
}

// Comm is this rank's membership in an ordered set of ranks.
type Comm struct {
	eng        *cpu.Comm
	rank, size int
	opt        Options
	tab        algo.Table
	host       string

	lib      *library      // what moves its data
	onHost   engine.Engine // what makes its calls on host memory: eng, or lib's end
	watchers watchers

	calling calling // what only the goroutine that uses the Comm touches
	rec     recorder
	backlog backlog // of queued calls
	devices devices // its streams on a device
	life    life
	reserve *reserve // its part in a job with spares, nil if it has none
}

// calling is what belongs to the one goroutine that makes calls on a Comm.
type calling struct {
	// calls of any kind; a plain counter, so that -race sees two goroutines on one Comm
	count   int
	call    call.Call                      // the blocking call under way, or the last: most calls are like the one before
	one     [1]*call.Call                  // that call, as it is handed over
	makes   func(k *call.Call) *call.Fault // see makeOwn
	factors factors                        // of the operators that Scaled has made
}

// Place says where a rank runs.
type Place struct {
	// Host is the name of the rank's host: what GOCCL_HOSTID says, else the system's.
	Host string
	// The host is number Node of Nodes. On it, the rank is number Local of Locals.
	Node, Nodes, Local, Locals int
	// Device is the index of the rank's device, -1 if the Comm has none. It is Local in most jobs. Ranks
	// that stay in a job that has lost or taken in others keep their device, and a newcomer has one that
	// was free.
	Device int
}

// newComm wraps the engine's Comm that join makes, nil if it makes none, and what moves its data,
// which attach makes. Its name is that which the first error already has.
func newComm(o Options, tab algo.Table, host, name string, join func(plane.Options) (*cpu.Comm, *call.Fault),
	attach func(*cpu.Comm) (*library, *call.Fault)) (*Comm, *call.Fault) {
	c := &Comm{opt: o, tab: tab, host: host,
		life: life{done: make(chan struct{}), over: make(chan struct{}), lost: new(loss), parent: proc.Parent(),
			unwinding: unwinding() != nil}}
	c.backlog.c = c
	var eo plane.Options
	eo.Agreed.Timeout, eo.Agreed.PeerTimeout = max(o.Timeout, 0), max(o.PeerTimeout, 0)
	eo.Agreed.Strict, eo.Agreed.Unchecked, eo.Agreed.RankOrder, eo.Agreed.Table = o.Check == CheckStrict,
		o.Check == CheckOff, o.RankOrder, tab
	eo.OnSleep = func(k *call.Call) {
		if k == &c.calling.call || k.Inside != 0 { // or within that
			c.rec.callers.note(k.Seq)
		}
	}
	eo.OnFail = func(f *call.Fault, later bool) {
		switch {
		case !c.life.ready.Load():
		case !later:
			failed(c, f)
		case o.pool != nil:
			go o.pool.lost(c.eng.World(f.Peer), f.Err)
		}
	}
	reporter{c}.watch(&eo)
	c.watchers = watchersOf(&c.opt)
	eng, f := join(eo)
	if f != nil {
		return nil, f
	}
	if eng != nil {
		eng.SetName(name)
	}
	if c.lib, f = attach(eng); f != nil {
		if eng != nil {
			eng.Close()
		}
		return nil, f
	}
	if eng == nil {
		return nil, nil
	}
	c.eng, c.rank, c.size = eng, eng.Rank(), eng.Size()
	c.onHost, c.calling.one[0], c.rec.clock = eng, &c.calling.call, eng.Control().Clock
	if !c.lib.isCPU() && c.lib.onHost(o.Staged) {
		c.onHost = c.lib.end
	}
	c.life.ready.Store(true)
	if f := eng.Failure(); f != nil { // a rank failed after the verdict
		failed(c, f)
	}
	return c, nil
}

// errorOf is f as an Error of this rank, outside any call.
func errorOf(c *Comm, f *call.Fault) *Error {
	e := &Error{Code: Code(f.Code), Op: "Comm", Rank: c.rank, Peer: f.Peer, Missing: f.Missing, Certain: f.Certain,
		Err: f.Err, loss: c.life.lost}
	if f.Theirs != nil {
		e.Theirs = callOf(f.Theirs)
		if f.Mine != nil {
			e.Mine = callOf(f.Mine)
		}
	}
	return c.named(e)
}

// callOf is the call that r describes, by whichever part of the engine: each keeps the number by
// which the rank that made the call counts it.
func callOf(r *call.Record) *Call {
	return &Call{Seq: r.Seq, Count: r.Count, Kind: Kind(r.Kind), Type: Type(r.Type), Op: Op(r.Op),
		State: State(r.State), Root: max(r.Root, noRoot), Number: max(noRoot-r.Root, 0), Factor: float64(r.Times),
		Start: time.Duration(r.Start), End: time.Duration(r.End)}
}

// Rank returns the number of this rank in c, from 0 to Size-1.
func (c *Comm) Rank() int {
	if c.isNil() {
		return -1
	}
	return c.rank
}

// Size returns the number of ranks of c.
func (c *Comm) Size() int {
	if c.isNil() {
		return 0
	}
	return c.size
}

// Place returns where this rank runs.
func (c *Comm) Place() Place {
	if c.isNil() {
		return Place{Node: -1, Local: -1, Device: -1}
	}
	t := c.eng.Topology()
	node := t.Node(c.rank)
	return Place{Host: c.host, Node: node, Nodes: t.Nodes(), Local: t.Local(c.rank), Locals: t.Locals(node),
		Device: c.lib.device}
}

// String returns a line such as: rank 3 of 8 (2 hosts, cpu, shared memory and TCP (eth0))
func (c *Comm) String() string {
	if c.isNil() {
		return noComm
	}
	text := fmt.Sprintf("rank %d of %d (%d host%s, %s, %s", c.Rank(), c.Size(),
		c.eng.Topology().Nodes(), plural(c.eng.Topology().Nodes()), c.Backend(), c.eng.Transport())
	if r := reserveOf(c); r != nil {
		text += fmt.Sprintf(", %d of %d spares wait", c.Waiting(), r.opt.Spares)
	}
	return text + ")"
}

// Transport returns what connects the ranks of c: memory, shared memory, or TCP with its interface
// and, if that is not plain, its Wire.
func (c *Comm) Transport() string {
	if c.isNil() {
		return noComm
	}
	return c.eng.Transport()
}

// Plan describes how a call with count elements would run: the algorithm and the transport, or the
// library that would make the call.
func (c *Comm) Plan(k Kind, t Type, op Op, count int) string {
	switch {
	case c.isNil():
		return noComm
	case !c.lib.isCPU():
		return c.lib.loaded.Version
	}
	one := call.Call{Elem: t.Size()}
	one.Kind, one.Type, one.Op, one.Count = call.Kind(k), call.Type(t), call.Op(op), uint64(max(count, 0))
	return c.eng.Plan(&one)
}

// Supports returns nil if c can make such a call, and otherwise ErrUnsupported with the reason.
// Nothing is sent. For a Comm with a device the answer is for memory of the device, and for two
// buffers: [SupportsInPlace] says whether one will do.
func (c *Comm) Supports(k Kind, t Type, op Op) error {
	if c.isNil() {
		return refuseNone(k.String())
	}
	if e := supports(c, call.Kind(k), call.Type(t), call.Op(op), c.lib.onHost(c.opt.Staged)); e != nil {
		return c.refuse(k.String(), ErrUnsupported, e)
	}
	return nil
}

// Native returns the handle of the library's own communicator (ncclComm_t, ...), for calls that
// this package lacks. It is 0 if there is none, as on the CPU.
func (c *Comm) Native() uintptr {
	if c.isNil() {
		return 0
	}
	return c.lib.end.Native()
}

// Backend is the engine beside the CPU engine, as Options.Backend names it; "cpu" if there is none.
func (c *Comm) Backend() string {
	if c.isNil() {
		return noComm
	}
	return c.lib.backend.Name
}

// Library returns the name and version of the backend's library, such as "NCCL 2.28.9", or "" if
// there is none.
func (c *Comm) Library() string {
	if c.isNil() {
		return ""
	}
	return c.lib.loaded.Version
}

// Abort fails c on every rank with cause, or with the failure that came first. It may be called from any goroutine, and
// returns when that is decided: between hosts that takes as long as a message there and back, and 0.3 s at most.
func (c *Comm) Abort(cause error) {
	if c.isNil() || proc.Forked() {
		return
	}
	cause = firstCause(cmp.Or(cause, errors.New("no cause given")))
	cpu.AbortWith(c.eng, &call.Fault{Code: call.Aborted, Peer: c.Rank(), Err: cause})
}

// Done returns a channel that is closed when c fails. Err then says why.
func (c *Comm) Done() <-chan struct{} {
	if c.isNil() {
		return nil
	}
	return c.life.done
}

// Err returns the failure of c, or nil while c has not failed.
func (c *Comm) Err() error {
	if c.isNil() {
		return refuseNone("Comm")
	}
	if proc.Forked() {
		return &Error{Code: ErrClosed, Op: "Comm", Rank: c.Rank(), Peer: -1, Err: errForked}
	}
	if e := c.life.failure.Load(); e != nil {
		return e
	}
	return nil
}
