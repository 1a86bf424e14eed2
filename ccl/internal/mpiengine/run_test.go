package mpiengine

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/mpi"
)

// Each kind that MPI has a call for goes to the one of its name.
func TestKinds(t *testing.T) {
	for kind, want := range map[op.Kind]string{
		op.AllReduce: "AllReduce", op.Reduce: "Reduce", op.ReduceScatter: "ReduceScatter", op.ReduceScatterV: "ReduceScatterV",
		op.Broadcast: "Bcast", op.AllGather: "AllGather", op.AllGatherV: "AllGatherV", op.Gather: "Gather", op.GatherV: "GatherV",
		op.Scatter: "Scatter", op.ScatterV: "ScatterV", op.AllToAll: "AllToAll", op.AllToAllV: "AllToAllV",
		op.Send: "Send", op.Recv: "Recv", op.SendRecv: "SendRecv", op.Barrier: "Barrier",
	} {
		require.Equal(t, want, kinds[kind].String(), "kind %d", kind)
	}
	require.Len(t, kinds, int(op.Barrier)+1)
}

// The 8-bit floats and bool go as bytes, complex64 as words, a Barrier has no type, and all others are MPI's of the same name.
func TestTypeOf(t *testing.T) {
	for _, tc := range []struct {
		typ  op.Type
		want mpi.Type
		size int
	}{
		{op.Int8, mpi.TypeInt8, 1}, {op.Uint16, mpi.TypeUint16, 2}, {op.Int64, mpi.TypeInt64, 8}, {op.Float16, mpi.TypeFloat16, 2},
		{op.BFloat16, mpi.TypeBFloat16, 2}, {op.Float32, mpi.TypeFloat32, 4}, {op.Float64, mpi.TypeFloat64, 8},
		{op.Float8E4M3, mpi.TypeUint8, 1}, {op.Float8E5M2, mpi.TypeUint8, 1},
		{op.Bool, mpi.TypeUint8, 1}, {op.Complex64, mpi.TypeUint64, 8},
	} {
		require.Equal(t, tc.want, typeOf(tc.typ), "type %d", tc.typ)
		require.Equal(t, tc.size, typeOf(tc.typ).Size(), "type %d", tc.typ)
	}
	require.Zero(t, typeOf(op.None))
}

func TestOperatorOf(t *testing.T) {
	for o, want := range map[op.Op]mpi.Op{op.Sum: mpi.Sum, op.Prod: mpi.Prod, op.Min: mpi.Min, op.Max: mpi.Max, op.Avg: mpi.Sum, op.BAnd: mpi.Min, op.BOr: mpi.Max} {
		require.Equal(t, want, operatorOf(o), "%v", o)
	}
}

// What is in place where MPI does not allow it, or in a way that differs between ranks, goes through scratch memory; what
// MPI allows is said to be in place. The communicator here is MPI's world before MPI is initialised, of rank -1 and size 0, so
// that a rank's own block begins one block before the buffer, and rank -1 is the root.
func TestPrepare(t *testing.T) {
	world := mpi.World()
	if world.Size() != 0 {
		t.Skip("MPI is initialised")
	}
	me := world.Rank()
	mem := make([]float32, 12)
	at := func(i int) uintptr { return uintptr(unsafe.Pointer(&mem[i])) }
	const n = 3
	for _, tc := range []struct {
		name    string
		call    op.Call
		inPlace bool
		src     bool // the operand is copied to scratch memory
		dst     bool // the result comes from there
		elems   int  // of the result that this rank gets
	}{
		{"AllReduce", op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce}, DstAt: at(0), SrcAt: at(6)}}, false, false, false, n},
		{"AllReduce in place", op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce}, DstAt: at(0), SrcAt: at(0)}}, true, false, false, n},
		{"Reduce at the root", op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Root: int32(me)}, DstAt: at(0), SrcAt: at(6)}}, false, false, false, n},
		{"Reduce in place at the root", op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Root: int32(me)}, DstAt: at(0), SrcAt: at(0)}}, false, true, false, n},
		{"Reduce elsewhere", op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Root: 1}, SrcAt: at(0)}}, false, false, false, 0},
		{"ReduceScatter", op.Call{Head: op.Head{Record: op.Record{Kind: op.ReduceScatter}, DstAt: at(0), SrcAt: at(6)}}, false, false, false, n},
		{"ReduceScatter in place", op.Call{Head: op.Head{Record: op.Record{Kind: op.ReduceScatter}, DstAt: at(3), SrcAt: at(6)}}, false, false, true, n},
		{"AllGather", op.Call{Head: op.Head{Record: op.Record{Kind: op.AllGather}, DstAt: at(6), SrcAt: at(0)}}, false, false, false, n},
		{"AllGather in place", op.Call{Head: op.Head{Record: op.Record{Kind: op.AllGather}, DstAt: at(6), SrcAt: at(3)}}, true, false, false, n},
		{"Gather in place at the root", op.Call{Head: op.Head{Record: op.Record{Kind: op.Gather, Root: int32(me)}, DstAt: at(6), SrcAt: at(3)}}, true, false, false, n},
		{"Gather elsewhere", op.Call{Head: op.Head{Record: op.Record{Kind: op.Gather, Root: 1}, DstAt: at(6), SrcAt: at(3)}}, false, false, false, n},
		{"Scatter in place at the root", op.Call{Head: op.Head{Record: op.Record{Kind: op.Scatter, Root: int32(me)}, DstAt: at(3), SrcAt: at(6)}}, true, false, false, n},
		{"Scatter elsewhere", op.Call{Head: op.Head{Record: op.Record{Kind: op.Scatter, Root: 1}, DstAt: at(3), SrcAt: at(6)}}, false, false, false, n},
		{"AllToAll in place", op.Call{Head: op.Head{Record: op.Record{Kind: op.AllToAll}, DstAt: at(0), SrcAt: at(0)}}, false, true, false, n},
		{"SendRecv", op.Call{Head: op.Head{Record: op.Record{Kind: op.SendRecv, Root: 1}, To: 2, SrcN: n, DstAt: at(0), SrcAt: at(6)}}, false, false, false, n},
		{"SendRecv in place", op.Call{Head: op.Head{Record: op.Record{Kind: op.SendRecv, Root: 1}, To: 2, SrcN: n, DstAt: at(0), SrcAt: at(0)}}, false, true, false, n},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i := range mem {
				mem[i] = float32(i)
			}
			c := tc.call
			c.Type, c.Count = op.Float32, n
			sent := 0 // of SendRecv alone: what is large by it goes in pieces
			if c.Kind == op.SendRecv {
				sent = n
			}
			if c.SrcN = n; c.Kind == op.Scatter || c.Kind == op.ReduceScatter || c.Kind == op.AllToAll {
				c.SrcN *= 4 // blocks
			}
			scratch := make([]float32, n)
			asked := 0
			p := plan{e: &Engine{comm: world}, c: &c, k: new(mpi.Call)}
			p.prepare(func(bytes int) uintptr {
				asked++
				require.LessOrEqual(t, bytes, 4*n)
				return uintptr(unsafe.Pointer(&scratch[0]))
			})
			room := uintptr(unsafe.Pointer(&scratch[0]))
			require.Equal(t, tc.inPlace, p.k.InPlace)
			require.Equal(t, tc.src, p.k.Src == room)
			require.Equal(t, tc.dst, p.k.Dst == room)
			require.Equal(t, tc.src || tc.dst, asked == 1)
			if !tc.src {
				require.Equal(t, c.SrcAt, p.k.Src)
			}
			require.Equal(t, tc.elems, p.n)
			require.Equal(t, []int{int(c.Root), n, sent}, []int{p.k.Root, p.k.N, p.k.M})
			if tc.src && c.Kind == op.SendRecv { // what is copied is what is sent
				require.Equal(t, []float32{0, 1, 2}, scratch)
			}
			if tc.dst {
				copy(scratch, []float32{7, 8, 9})
				p.finish()
				require.Equal(t, []float32{7, 8, 9}, mem[3:6], "the result is where it belongs")
			}
		})
	}
}

// A Send's peer is where it goes, and a sum is what an average begins as.
func TestPrepareNames(t *testing.T) {
	p := plan{e: &Engine{comm: mpi.World()}, c: &op.Call{Head: op.Head{Record: op.Record{Kind: op.Send, Type: op.Int8, Root: 4, Count: 1}}}, k: new(mpi.Call)}
	p.prepare(nil)
	require.Equal(t, 4, p.k.To)
	p.c = &op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Op: op.Avg, Count: 2}}}
	p.prepare(nil)
	require.Equal(t, mpi.Sum, p.k.Op)
	p.c.Op = op.Max
	p.prepare(nil)
	require.Equal(t, mpi.Max, p.k.Op)
}

// Scratch memory is used again, and made larger where it is too small.
func TestRoom(t *testing.T) {
	var e Engine
	first := e.room(9)
	require.Len(t, e.scratch, 2)
	require.Equal(t, first, e.room(16))
	e.room(17)
	require.Len(t, e.scratch, 3)
}
