package mpiengine

import (
	"context"
	"errors"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
	"github.com/goccl/goccl/mpi"
)

var kinds = [...]mpi.Kind{
	op.AllReduce: mpi.KindAllReduce, op.Reduce: mpi.KindReduce, op.ReduceScatter: mpi.KindReduceScatter,
	op.ReduceScatterV: mpi.KindReduceScatterV, op.Broadcast: mpi.KindBcast, op.AllGather: mpi.KindAllGather,
	op.AllGatherV: mpi.KindAllGatherV, op.Gather: mpi.KindGather, op.GatherV: mpi.KindGatherV,
	op.Scatter: mpi.KindScatter, op.ScatterV: mpi.KindScatterV, op.AllToAll: mpi.KindAllToAll,
	op.AllToAllV: mpi.KindAllToAllV, op.Send: mpi.KindSend, op.Recv: mpi.KindRecv,
	op.SendRecv: mpi.KindSendRecv, op.Barrier: mpi.KindBarrier,
}

// typeOf is t for MPI. What it has no type for goes as one of its size: the 8-bit floats and
// complex64, which are only moved, and bool, whose least and greatest are those of a byte.
func typeOf(t op.Type) mpi.Type {
	switch {
	case t.Float8() || t == op.Bool:
		return mpi.TypeUint8
	case t == op.Complex64:
		return mpi.TypeUint64
	}
	return mpi.Type(t)
}

// operatorOf is o for MPI: an average is a sum and a division, and of a bool and is Min and or is Max.
func operatorOf(o op.Op) mpi.Op {
	switch o {
	case op.Avg:
		return mpi.Sum
	case op.BAnd:
		return mpi.Min
	case op.BOr:
		return mpi.Max
	}
	return mpi.Op(o)
}

// memory is that of an address, which package ccl keeps alive, and which is not of a stack.
func memory(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

func copyBytes(dst, src uintptr, n int) {
	if n > 0 {
		reduce.Copy(memory(dst), memory(src), n)
	}
}

// Run makes one call as a blocking one. Several are begun before any is waited for.
func (e *Engine) Run(_ context.Context, calls []*op.Call) error {
	if len(calls) != 1 {
		return e.group(calls)
	}
	p := plan{e: e, c: calls[0], k: &e.call}
	p.prepare(e.room)
	if _, err := e.comm.Do(context.Background(), p.k); err != nil {
		return e.leave(nil, err)
	}
	p.finish()
	return nil
}

// group begins all calls, in order, and then waits for all.
func (e *Engine) group(calls []*op.Call) error {
	plans := make([]plan, len(calls))
	requests := make([]*mpi.Request, len(calls))
	for i := range calls {
		plans[i] = plan{e: e, c: calls[i], k: new(mpi.Call)}
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
	c   *op.Call
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
	*k = mpi.Call{Kind: kinds[c.Kind], Type: typeOf(c.Type), Op: operatorOf(c.Op), Root: int(c.Root), To: c.To,
		Dst: c.DstAt, Src: c.SrcAt, N: int(c.Count), DC: c.DC, SC: c.SC}
	elem := k.Type.Size()
	// block is where this rank's block of a buffer of blocks is.
	block := func(base uintptr) uintptr {
		if len(c.DC) == 0 {
			return base + uintptr(me*int(c.Count)*elem)
		}
		return base + uintptr(op.Elements(c.DC[:me])*elem)
	}
	if len(c.DC) > 0 {
		k.N = c.DC[me]
	}
	p.n = k.N
	switch c.Kind {
	case op.AllReduce:
		k.InPlace = c.DstAt == c.SrcAt
	case op.Reduce:
		if me != int(c.Root) {
			p.n = 0
		} else if c.DstAt == c.SrcAt { // MPICH 4.0.2 reads from the address MPI_IN_PLACE where the root is not 0
			k.Src = room(max(p.n*elem, 1))
			copyBytes(k.Src, c.SrcAt, p.n*elem)
		}
	case op.ReduceScatter, op.ReduceScatterV:
		if p.n == 0 || c.DstAt == block(c.SrcAt) { // MPI refuses equal addresses, and an empty slice may have any
			p.to, k.Dst = c.DstAt, room(max(p.n*elem, 1))
		}
	case op.AllGather, op.AllGatherV:
		k.InPlace = p.n > 0 && c.SrcAt == block(c.DstAt)
	case op.Gather, op.GatherV:
		k.InPlace = me == int(c.Root) && p.n > 0 && c.SrcAt == block(c.DstAt)
	case op.Scatter, op.ScatterV:
		k.InPlace = me == int(c.Root) && p.n > 0 && c.DstAt == block(c.SrcAt)
	case op.AllToAll, op.AllToAllV, op.SendRecv:
		bytes := size * int(c.Count) * elem
		switch c.Kind {
		case op.AllToAllV:
			bytes = op.Elements(c.SC) * elem
		case op.SendRecv:
			k.M, bytes = c.SrcN, c.SrcN*elem
		}
		if c.DstAt == c.SrcAt { // also without elements, as above
			k.Src = room(max(bytes, 1))
			copyBytes(k.Src, c.SrcAt, bytes)
		}
	case op.Send:
		k.To = int(c.Root)
	}
}

// finish ends what MPI has not: an average's division, and the way to where the result belongs.
func (p *plan) finish() {
	if p.c.Op == op.Avg && p.c.Kind.Reduces() && p.n > 0 {
		reduce.Scale(p.c.Type)(memory(p.k.Dst), p.n, p.e.comm.Size())
	}
	if p.to != 0 {
		copyBytes(p.to, p.k.Dst, p.n*p.k.Type.Size())
	}
}
