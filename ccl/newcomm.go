package ccl

import (
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/algo"
)

// newComm wraps the engine's Comm that join makes, nil if it makes none, and what moves its data,
// which attach makes. Its name is that which the first error already has.
func newComm(o settings, tab algo.Table, host, name string, join func(plane.Options) (*cpu.Comm, *call.Fault),
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
	c.watchers = watchersOf(&c.opt.Options)
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
	o.links.order(eng) // which attach may have agreed on
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
