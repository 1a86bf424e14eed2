package ccl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// compiledIn are the libraries that this build can open.
func compiledIn() (list []*engine.Backend) {
	for _, b := range engine.Backends() {
		if b.Open != nil {
			list = append(list, b)
		}
	}
	return list
}

// Backends lists the values of Options.Backend that this build can open: cpu, and one for
// each of the build tags nccl, rccl, oneccl and mpi that it was built with.
func Backends() []string {
	names := []string{"cpu"}
	for _, b := range compiledIn() {
		names = append(names, b.Name)
	}
	return names
}

// checkBackend says what is wrong with Options.Backend.
func checkBackend(name string) error {
	switch {
	case name == "" || slices.Contains(Backends(), name):
		return nil
	case engine.Find(name) != nil:
		return fmt.Errorf("no backend %q is compiled in: build with -tags %s; this build has %s", name, name,
			strings.Join(Backends(), ", "))
	}
	return fmt.Errorf("there is no backend %q; there are %s", name, strings.Join(engine.Names(), ", "))
}

// library is what moves a Comm's data: the CPU engine, or a library beside it.
type library struct {
	end      *cpu.Beside // of the communicator
	backend  *engine.Backend
	loaded   *engine.Library
	device   int            // -1: it takes host memory
	known    [2]knownMemory // of the last calls
	held     holdings
	call     call.Call             // the last call on a device that was in no group, and
	one      [1]*call.Call         // that call, as it is handed over
	unshrunk bool                  // the library has failed to shrink it: what is made of it is new
	shared   func(left bool) error // lets go of what its backend shares
}

// onCPU is what a Comm has that was given no library.
func onCPU(eng *cpu.Comm) *library {
	lib := &engine.Library{Interruptible: true, Windows: engine.ErrUnsupported}
	return &library{end: eng.Beside(eng, lib, vendorError), backend: &engine.CPU, loaded: lib, device: -1}
}

// isCPU reports whether l is the CPU engine.
func (l *library) isCPU() bool { return l.backend == &engine.CPU }

// onHost reports whether l moves host memory: it does, if it takes no other, or is to, by copies.
func (l *library) onHost(staged bool) bool { return l.device < 0 || staged }

// choose is the backend for a new Comm: the one asked for, or the first whose device every rank
// has. Which are compiled in is the same on all ranks of a job that asks for none, as the options,
// which are compared, say.
func (t vote) choose(o *Options, local, locals int) (*engine.Backend, *call.Fault) {
	if o.Backend != "" {
		return engine.Find(o.Backend), nil // nil for cpu
	}
	devices := withDevices("")
	if devices == nil {
		return nil, nil
	}
	have := make([]int64, len(devices))
	for i, b := range devices {
		if d, err := deviceFor(b, o, local, locals); err != nil || d < 0 {
			continue
		}
		if _, err := b.Open(); err != nil {
			o.Log.Warn("a device is here, but not its library: host memory only", "backend", b.Name, "error", err)
			continue
		}
		have[i] = 1
	}
	if err := t.min(have); err != nil {
		return nil, faultOf(err)
	}
	if i := slices.Index(have, 1); i >= 0 {
		if o.Spares > 0 && devices[i].Uninterruptible {
			return nil, &call.Fault{Code: call.Unsupported, Peer: -1, Err: errUninterruptible(devices[i].Title)}
		}
		return devices[i], nil
	}
	return nil, nil
}

// deviceFor is b's device for a rank, -1 for host memory.
func deviceFor(b *engine.Backend, o *Options, local, locals int) (int, error) {
	switch {
	case b.Choose == nil:
		return -1, nil
	case o.Device != nil:
		return b.Choose(*o.Device, local, locals)
	}
	return b.Choose(-1, local, locals)
}

// openLibrary gives a new Comm of the whole job what moves its data: all ranks get it, or all the same error.
func openLibrary(ctx context.Context, eng *cpu.Comm, o *Options) (*library, *call.Fault) {
	topo, rank := eng.Topology(), eng.Rank()
	return openLibraryAt(ctx, eng, o, topo.Local(rank), topo.Locals(topo.Node(rank)))
}

// openLibraryAt is openLibrary, where this rank's device is that of the local-th rank of locals on its host.
func openLibraryAt(ctx context.Context, eng *cpu.Comm, o *Options, local, locals int) (*library, *call.Fault) {
	t := vote{ctx, eng}
	backend, f := t.choose(o, local, locals)
	switch {
	case f != nil:
		return nil, f
	case backend == nil:
		if err := o.Hints.takes(engine.CPU.Name, nil); err != nil {
			return nil, &call.Fault{Code: call.Unsupported, Peer: -1, Err: err}
		}
		return onCPU(eng), nil
	}
	if o.Wire != auth.Plain.String() && eng.Topology().Nodes() > 1 {
		return nil, &call.Fault{Code: call.Unsupported, Peer: -1,
			Err: fmt.Errorf("%s sends data between hosts itself, where Wire (GOCCL_WIRE)=%s does not protect them: take Backend \"cpu\"", backend.Name, o.Wire)}
	}
	l := &library{backend: backend}
	var err error
	if here := eng.Control().Standing.RanksHere(); backend.Sole && here > 1 {
		err = fmt.Errorf("%s takes one rank per process, and this process has %d: start one process per rank", backend.Name,
			here)
	} else if l.loaded, err = backend.Open(); err == nil {
		if l.device, err = deviceFor(backend, o, local, locals); err == nil {
			err = o.Hints.takes(backend.Name, l.loaded)
		}
	}
	if f := t.verdict(err); f != nil {
		return nil, f
	}
	if f := t.sameVersion(l.loaded.Version); f != nil {
		return nil, f
	}
	return l.connect(t, o, func(g engine.Group) (engine.Engine, error) { return l.fresh(t, g) })
}

// fresh makes a communicator, whose id the ranks get over t.
func (l *library) fresh(t vote, g engine.Group) (engine.Engine, error) {
	id, err := t.ids(l.loaded)
	if err != nil {
		return nil, err
	}
	return l.loaded.New(t.ctx, g, id)
}

// ids are those of a new communicator: of as many as its library wants for this many ranks, each is
// made by another rank, from where it listens. Nobody goes on before all have them: a library's start
// may block, and a rank still in here would wait for one in there.
func (t vote) ids(lib *engine.Library) ([]byte, error) {
	n, size := min(lib.IDBytes, 1), lib.IDBytes
	if lib.IDs != nil {
		n = lib.IDs(t.eng.Size())
	}
	all := make([]byte, n*size)
	var err error
	for i := range n {
		if t.eng.Rank() != i*t.eng.Size()/n {
			continue
		}
		var id []byte
		if id, err = lib.ID(); err == nil && len(id) != size {
			err = fmt.Errorf("%s has made an id of %d bytes, not of %d", lib.Version, len(id), size)
		}
		copy(all[i*size:], id)
	}
	if f := t.verdict(err); f != nil {
		return nil, f
	}
	if err := t.run(op.AllReduce, TypeUint8, Max, all, all); err != nil { // what others have made is 0 here
		return nil, err
	}
	return all, t.run(op.Barrier, TypeNone, Sum, nil, nil)
}

// share holds what l's backend shares, on all ranks or on none.
func (l *library) share(t vote) *call.Fault {
	if l.backend.Share == nil {
		return nil
	}
	var err error
	l.shared, err = l.backend.Share()
	f := t.verdict(err)
	if f != nil {
		l.letGo(false)
	}
	return f
}

// letGo undoes share.
func (l *library) letGo(left bool) error {
	if l.shared == nil {
		return nil
	}
	return l.shared(left)
}

// connect has start make the communicator of l, on all ranks or on none.
func (l *library) connect(t vote, o *Options, start func(engine.Group) (engine.Engine, error)) (*library, *call.Fault) {
	topo, rank := t.eng.Topology(), t.eng.Rank()
	g := engine.Group{Rank: rank, Size: t.eng.Size(), Device: l.device, Local: topo.Local(rank),
		Locals: topo.Locals(topo.Node(rank)),
		Strict: o.Check == CheckStrict, Hints: o.Hints.engine(), Name: t.eng.Name(), Check: func() error {
			if f := t.eng.Failure(); f != nil {
				return f
			}
			return t.ctx.Err()
		}}
	if f := l.share(t); f != nil {
		return nil, f
	}
	e, err := start(g)
	if err != nil {
		t.giveUp(err) // the others may wait in the library for this rank
	}
	l.end, l.one[0] = t.eng.Beside(e, l.loaded, vendorError), &l.call
	f := t.verdict(err)
	if f == nil {
		if e := l.end.Agree(t.min); e != nil {
			f = faultOf(e)
		}
	}
	if f != nil {
		if err == nil {
			l.end.Abort()
			l.end.Close()
		}
		l.letGo(false)
		return nil, f
	}
	return l, nil
}

// sameVersion compares the library's version on all ranks, and lists who has what.
func (t vote) sameVersion(mine string) *call.Fault {
	const width = 64
	first := make([]byte, width)
	if t.eng.Rank() == 0 {
		copy(first, mine)
	}
	if err := t.broadcast(first); err != nil {
		return faultOf(err)
	}
	own := make([]byte, width)
	copy(own, mine)
	same := []int64{bit[int64](string(own) == string(first))}
	if err := t.min(same); err != nil {
		return faultOf(err)
	}
	if same[0] == 1 {
		return nil
	}
	all := make([]byte, width*t.eng.Size())
	if err := t.run(op.AllGather, TypeUint8, Sum, all, own); err != nil {
		return faultOf(err)
	}
	who := map[string][]int{}
	odd := -1
	for r := range t.eng.Size() {
		v := strings.TrimRight(string(all[r*width:(r+1)*width]), "\x00")
		who[v] = append(who[v], r)
		if odd < 0 && v != strings.TrimRight(string(first), "\x00") {
			odd = r
		}
	}
	var list []string
	for v, rs := range who {
		list = append(list, fmt.Sprintf("rank%s %s: %s", plural(len(rs)), ranks(rs), v))
	}
	slices.Sort(list)
	return &call.Fault{Code: call.Version, Peer: odd,
		Err: fmt.Errorf("ranks have different libraries: %s", strings.Join(list, "; "))}
}

// splitLibrary gives child, whose control plane stands, its part of what moves c's data. Ranks without a child
// take part, since some libraries split collectively. They take colors and keys of 32 bits, so they get others than the
// caller's, which make the same parts in the same order: the world's rank of a part's first member, and ranks.
func splitLibrary(ctx context.Context, c *Comm, child *cpu.Comm, o *Options) (*library, *call.Fault) {
	l := &library{backend: c.lib.backend, loaded: c.lib.loaded, device: c.lib.device}
	switch {
	case child != nil && l.isCPU():
		return onCPU(child), nil
	case child == nil:
		_, err := c.lib.end.Split(ctx, engine.Group{Color: -1, Rank: -1, Device: l.device})
		if err != nil && !errors.Is(err, engine.ErrUnsupported) {
			return nil, faultOf(err)
		}
		return nil, nil
	}
	t := vote{ctx, child}
	return l.connect(t, o, func(g engine.Group) (engine.Engine, error) {
		g.Color, g.Key = child.World(0), g.Rank
		made, err := c.lib.end.Split(ctx, g)
		if errors.Is(err, engine.ErrUnsupported) { // the same on all ranks
			return l.fresh(t, g)
		}
		return made, err
	})
}

// errUninterruptible says why a library cannot be that of a job with spares.
func errUninterruptible(title string) error {
	return fmt.Errorf("Options.Spares (GOCCL_SPARES): a call inside %s cannot be ended when a rank is lost, so no rank can be replaced; Backend \"cpu\" can, as can NCCL and RCCL", title)
}
