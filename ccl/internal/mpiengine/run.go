package mpiengine

import (
	"context"
	"errors"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/mpi"
)

var kinds = [...]mpi.Kind{
	engine.AllReduce: mpi.KindAllReduce, engine.Reduce: mpi.KindReduce, engine.ReduceScatter: mpi.KindReduceScatter,
	engine.ReduceScatterV: mpi.KindReduceScatterV, engine.Broadcast: mpi.KindBcast, engine.AllGather: mpi.KindAllGather,
	engine.AllGatherV: mpi.KindAllGatherV, engine.Gather: mpi.KindGather, engine.GatherV: mpi.KindGatherV,
	engine.Scatter: mpi.KindScatter, engine.ScatterV: mpi.KindScatterV, engine.AllToAll: mpi.KindAllToAll,
	engine.AllToAllV: mpi.KindAllToAllV, engine.Send: mpi.KindSend, engine.Recv: mpi.KindRecv,
	engine.SendRecv: mpi.KindSendRecv, engine.Barrier: mpi.KindBarrier,
}

// typeOf is t for MPI; the 8-bit floats, which are only moved, go as bytes.
func typeOf(t engine.Type) mpi.Type {
	switch {
	case t == engine.None: // Barrier
		return 0
	case t <= engine.Float64:
		return mpi.Type(t)
	}
	return mpi.TypeUint8
}

// The two lists must not drift apart.
var (
	_ = [1]struct{}{}[uint8(engine.Float64)-uint8(mpi.TypeFloat64)]
	_ = [1]struct{}{}[uint8(engine.BFloat16)-uint8(mpi.TypeBFloat16)]
	_ = [1]struct{}{}[uint8(engine.Max)-uint8(mpi.Max)]
	_ = [1]struct{}{}[reduce.Float64+1-reduce.Type(engine.Float64)]
)

// memory is that of an address, which package ccl keeps alive, and which is not of a stack.
func memory(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func copyBytes(dst, src uintptr, n int) {
	if n > 0 {
		reduce.Copy(memory(dst), memory(src), n)
	}
}

// Run makes one call as a blocking one. Several are begun before any is waited for.
func (e *Engine) Run(_ context.Context, calls []engine.Call) error {
	if len(calls) != 1 {
		return e.group(calls)
	}
	p := plan{e: e, c: &calls[0], k: &e.call}
	p.prepare(e.room)
	if _, err := e.comm.Do(context.Background(), p.k); err != nil {
		return e.leave(nil, err)
	}
	p.finish()
	return nil
}

// group begins all calls, in order, and then waits for all.
func (e *Engine) group(calls []engine.Call) error {
	plans := make([]plan, len(calls))
	requests := make([]*mpi.Request, len(calls))
	for i := range calls {
		plans[i] = plan{e: e, c: &calls[i], k: new(mpi.Call)}
		plans[i].prepare(func(n int) uintptr {
			plans[i].own = make([]int64, (n+7)/8)
			return uintptr(unsafe.Pointer(unsafe.SliceData(plans[i].own)))
		})
		var err error
		if requests[i], err = e.comm.Start(plans[i].k); err != nil {
			return e.leave(requests[:i], err)
		}
	}
	for i, r := range requests {
		if _, err := r.Wait(context.Background()); err != nil {
			return e.leave(requests[i+1:], err)
		}
		plans[i].finish()
	}
	return nil
}

// leave is how calls end of which one has failed: with it the Comm, and MPI keeps the memory of the others.
func (e *Engine) leave(others []*mpi.Request, err error) error {
	var m *mpi.Error
	if len(others) > 0 || errors.As(err, &m) && m.Code != 0 { // else it was refused before it began
		e.failed.Store(true)
	}
	for _, r := range others {
		r.Abandon()
	}
	return libraryError(err)
}

// room is scratch memory for n bytes, used again by the next call.
func (e *Engine) room(n int) uintptr {
	if 8*len(e.scratch) < n {
		e.scratch = make([]int64, (n+7)/8)
	}
	return uintptr(unsafe.Pointer(unsafe.SliceData(e.scratch)))
}

// plan is how a call of ccl becomes one of MPI.
type plan struct {
	e   *Engine
	c   *engine.Call
	k   *mpi.Call
	own []int64 // scratch memory of its own
	n   int     // elements of the result that this rank gets
	to  uintptr // where the result is copied when it is there; 0 where it belongs
}

// prepare fills p.k. What is in place in a way that differs between ranks, which ccl allows, must
// not reach MPI where libraries choose the algorithm by it, or know it only at the beginning of the
// memory: AllToAll, SendRecv and ReduceScatter go through room.
func (p *plan) prepare(room func(bytes int) uintptr) {
	c, k, me, size := p.c, p.k, p.e.comm.Rank(), p.e.comm.Size()
	*k = mpi.Call{Kind: kinds[c.Kind], Type: typeOf(c.Type), Op: mpi.Op(c.Op), Root: c.Root, To: c.To,
		Dst: c.Dst, Src: c.Src, N: c.Count, M: c.Sent, DC: c.DC, SC: c.SC}
	if c.Op == engine.Avg {
		k.Op = mpi.Sum
	}
	elem := k.Type.Size()
	// block is where this rank's block of a buffer of blocks is.
	block := func(base uintptr) uintptr {
		if len(c.DC) == 0 {
			return base + uintptr(me*c.Count*elem)
		}
		return base + uintptr(sum(c.DC[:me])*elem)
	}
	if len(c.DC) > 0 {
		k.N = c.DC[me]
	}
	p.n = k.N
	switch c.Kind {
	case engine.AllReduce:
		k.InPlace = c.Dst == c.Src
	case engine.Reduce:
		if me != c.Root {
			p.n = 0
		} else if c.Dst == c.Src { // MPICH 4.0.2 reads from the address MPI_IN_PLACE where the root is not 0
			k.Src = room(max(p.n*elem, 1))
			copyBytes(k.Src, c.Src, p.n*elem)
		}
	case engine.ReduceScatter, engine.ReduceScatterV:
		if p.n == 0 || c.Dst == block(c.Src) { // MPI refuses equal addresses, and an empty slice may have any
			p.to, k.Dst = c.Dst, room(max(p.n*elem, 1))
		}
	case engine.AllGather, engine.AllGatherV:
		k.InPlace = p.n > 0 && c.Src == block(c.Dst)
	case engine.Gather, engine.GatherV:
		k.InPlace = me == c.Root && p.n > 0 && c.Src == block(c.Dst)
	case engine.Scatter, engine.ScatterV:
		k.InPlace = me == c.Root && p.n > 0 && c.Dst == block(c.Src)
	case engine.AllToAll, engine.AllToAllV, engine.SendRecv:
		bytes := size * c.Count * elem
		switch c.Kind {
		case engine.AllToAllV:
			bytes = sum(c.SC) * elem
		case engine.SendRecv:
			bytes = c.Sent * elem
		}
		if c.Dst == c.Src { // also without elements, as above
			k.Src = room(max(bytes, 1))
			copyBytes(k.Src, c.Src, bytes)
		}
	case engine.Send:
		k.To = c.Root
	}
}

// finish ends what MPI has not: an average's division, and the way to where the result belongs.
func (p *plan) finish() {
	if p.c.Op == engine.Avg && p.c.Kind <= engine.ReduceScatterV && p.n > 0 {
		reduce.Scale(reduce.Type(p.c.Type-1))(memory(p.k.Dst), p.n, p.e.comm.Size())
	}
	if p.to != 0 {
		copyBytes(p.to, p.k.Dst, p.n*p.k.Type.Size())
	}
}

func sum(counts []int) int {
	n := 0
	for _, k := range counts {
		n += k
	}
	return n
}
