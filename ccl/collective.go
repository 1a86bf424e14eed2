package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
)

// The collectives on host slices. They block until done, ctx ends, or c fails. If
// ctx ends first, c fails with ErrTimeout or ErrCanceled on all ranks, since its
// peers are left half way.
//
// In place: AllGather and Gather: src is dst[r*k:(r+1)*k]; ReduceScatter and
// Scatter: dst is that part of src; the others: dst and src are one slice. They
// may not overlap otherwise. A nil slice is an empty one. An argument without
// meaning on a rank (dst of Reduce off the root, ...) is ignored. A blocking call
// first waits for the calls queued on c before it.

// AllReduce combines the src of all ranks, element by element, into dst on every
// rank. len(dst) == len(src), the same on all ranks. It is MPI_Allreduce and
// ncclAllReduce.
func AllReduce[T Element](ctx context.Context, c *Comm, dst, src []T, op Op) error {
	return c.block(ctx, &args{kind: call.AllReduce, typ: TypeOf[T](), op: op, root: -1, dst: areaOf(dst),
		src: areaOf(src)})
}

// Reduce combines the src of all ranks into dst on root. It is MPI_Reduce and
// ncclReduce.
func Reduce[T Element](ctx context.Context, c *Comm, dst, src []T, op Op, root int) error {
	return c.block(ctx, &args{kind: call.Reduce, typ: TypeOf[T](), op: op, root: root, dst: areaOf(dst), src: areaOf(src)})
}

// ReduceScatter combines the src of all ranks and leaves part r of the result in
// dst of rank r. len(src) == Size*len(dst). It is MPI_Reduce_scatter_block and
// ncclReduceScatter.
func ReduceScatter[T Element](ctx context.Context, c *Comm, dst, src []T, op Op) error {
	return c.block(ctx, &args{kind: call.ReduceScatter, typ: TypeOf[T](), op: op, root: -1, dst: areaOf(dst),
		src: areaOf(src)})
}

// ReduceScatterV is ReduceScatter with parts of counts[r] elements, the same counts
// on all ranks. It is MPI_Reduce_scatter.
func ReduceScatterV[T Element](ctx context.Context, c *Comm, dst, src []T, counts []int, op Op) error {
	return c.block(ctx, &args{kind: call.ReduceScatterV, typ: TypeOf[T](), op: op, root: -1, dst: areaOf(dst),
		src: areaOf(src), dc: counts})
}

// Broadcast copies buf of root to buf of every rank. It is MPI_Bcast and
// ncclBroadcast in place.
func Broadcast[T Element](ctx context.Context, c *Comm, buf []T, root int) error {
	b := areaOf(buf)
	return c.block(ctx, &args{kind: call.Broadcast, typ: TypeOf[T](), root: root, dst: b, src: b})
}

// AllGather puts the src of rank r into part r of dst, on every rank.
// len(dst) == Size*len(src). It is MPI_Allgather and ncclAllGather.
func AllGather[T Element](ctx context.Context, c *Comm, dst, src []T) error {
	return c.block(ctx, &args{kind: call.AllGather, typ: TypeOf[T](), root: -1, dst: areaOf(dst), src: areaOf(src)})
}

// AllGatherV is AllGather with counts[r] elements of rank r, the same counts on all
// ranks. It is MPI_Allgatherv without displacements.
func AllGatherV[T Element](ctx context.Context, c *Comm, dst []T, counts []int, src []T) error {
	return c.block(ctx, &args{kind: call.AllGatherV, typ: TypeOf[T](), root: -1, dst: areaOf(dst), src: areaOf(src),
		dc: counts})
}

// Gather collects the src of each rank r in part r of dst on root, as MPI_Gather does.
func Gather[T Element](ctx context.Context, c *Comm, dst, src []T, root int) error {
	return c.block(ctx, &args{kind: call.Gather, typ: TypeOf[T](), root: root, dst: areaOf(dst), src: areaOf(src)})
}

// GatherV is Gather with counts[r] elements from rank r. All ranks must pass the same counts. It is
// MPI_Gatherv without displacements.
func GatherV[T Element](ctx context.Context, c *Comm, dst []T, counts []int, src []T, root int) error {
	return c.block(ctx, &args{kind: call.GatherV, typ: TypeOf[T](), root: root, dst: areaOf(dst), src: areaOf(src),
		dc: counts})
}

// Scatter sends part r of src on root to dst of rank r, as MPI_Scatter does.
func Scatter[T Element](ctx context.Context, c *Comm, dst, src []T, root int) error {
	return c.block(ctx, &args{kind: call.Scatter, typ: TypeOf[T](), root: root, dst: areaOf(dst), src: areaOf(src)})
}

// ScatterV is Scatter with counts[r] elements for rank r. All ranks must pass the same counts. It
// is MPI_Scatterv without displacements.
func ScatterV[T Element](ctx context.Context, c *Comm, dst, src []T, counts []int, root int) error {
	return c.block(ctx, &args{kind: call.ScatterV, typ: TypeOf[T](), root: root, dst: areaOf(dst), src: areaOf(src),
		dc: counts})
}

// AllToAll puts part r of src of rank s into part s of dst of rank r: a transpose.
// len(dst) == len(src), a multiple of Size. It is MPI_Alltoall.
func AllToAll[T Element](ctx context.Context, c *Comm, dst, src []T) error {
	return c.block(ctx, &args{kind: call.AllToAll, typ: TypeOf[T](), root: -1, dst: areaOf(dst), src: areaOf(src)})
}

// AllToAllV is AllToAll with sc[r] elements for rank r and dc[r] elements from it:
// dc[r] here must be sc of this rank on r. It is MPI_Alltoallv without displacements.
func AllToAllV[T Element](ctx context.Context, c *Comm, dst []T, dc []int, src []T, sc []int) error {
	return c.block(ctx, &args{kind: call.AllToAllV, typ: TypeOf[T](), root: -1, dst: areaOf(dst), src: areaOf(src),
		dc: dc, sc: sc})
}

// Send sends src to a Recv on peer. It may return before peer has received. Calls to one peer are
// matched in the order in which they were made.
func Send[T Element](ctx context.Context, c *Comm, src []T, peer int) error {
	return c.block(ctx, &args{kind: call.Send, typ: TypeOf[T](), root: peer, src: areaOf(src)})
}

// Recv receives into dst what peer sends. Both sides must give the same count and type.
func Recv[T Element](ctx context.Context, c *Comm, dst []T, peer int) error {
	return c.block(ctx, &args{kind: call.Recv, typ: TypeOf[T](), root: peer, dst: areaOf(dst)})
}

// SendRecv sends src to rank to, and at the same time receives dst from rank from. The two cannot
// block each other. It is MPI_Sendrecv.
func SendRecv[T Element](ctx context.Context, c *Comm, dst []T, from int, src []T, to int) error {
	return c.block(ctx, &args{kind: call.SendRecv, typ: TypeOf[T](), root: from, to: to, dst: areaOf(dst),
		src: areaOf(src)})
}

// Barrier returns when every rank has called it.
func Barrier(ctx context.Context, c *Comm) error {
	return c.block(ctx, &args{kind: call.Barrier, root: -1})
}
