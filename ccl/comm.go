package ccl

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/engine"
)

// Version is the version of this module. Between two releases it is that of the next one, with
// "-dev". All ranks of a job must run the same.
const Version = "0.4.0-dev"

// Comm is this rank's membership in an ordered set of ranks.
type Comm struct {
	eng        *cpu.Comm
	rank, size int
	opt        settings
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

// Name returns the name of c in reports: the one that SetName gave it, otherwise "world" for the
// Comm of NewComm, and "world/1" for the part of it with color 1.
func (c *Comm) Name() string {
	if c.isNil() {
		return noComm
	}
	return c.eng.Name()
}

// SetName names c in reports, as MPI_Comm_set_name does. Ranks may give different names, but
// reports are easier to read if they agree.
func (c *Comm) SetName(name string) {
	if !c.isNil() {
		c.eng.SetName(name)
	}
}

// isNil reports whether c is no Comm.
func (c *Comm) isNil() bool { return c == nil || c.eng == nil }

// named says in e which Comm it is about.
func (c *Comm) named(e *Error) *Error {
	if c.isNil() || !c.life.ready.Load() {
		return e
	}
	if name := c.Name(); name != worldName {
		e.Comm = name
	}
	for r := range c.Size() {
		if c.eng.World(r) == r {
			continue
		}
		e.World = make([]int, c.Size())
		for r := range e.World {
			e.World[r] = c.eng.World(r)
		}
		break
	}
	return e
}

// refuse is the error of a call that had no effect.
func (c *Comm) refuse(op string, code Code, err error) *Error {
	return c.named(&Error{Code: code, Op: op, Rank: c.Rank(), Peer: -1, Err: err})
}

// refused is the error of a call that has come to nothing on all ranks, because of f; c goes on.
func (c *Comm) refused(op string, f *call.Fault) *Error {
	return c.named(&Error{Code: Code(f.Code), Op: op, Rank: c.Rank(), Peer: f.Peer, Missing: f.Missing, Err: f.Err})
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
