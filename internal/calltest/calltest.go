// Package calltest is for tests of collectives: it makes any of them, and says how long a rank's buffers are and what a
// rank gets. What the elements are, and how they are reduced, is the test's.
package calltest

import (
	"context"

	"github.com/goccl/goccl/ccl"
)

// A Call is one collective, the same on all ranks of its Comm.
type Call struct {
	Kind   ccl.Kind
	Op     ccl.Op
	Root   int
	Count  int     // elements of the vector, or of one rank's block
	Counts []int   // of the V kinds: elements of each block
	Matrix [][]int // of AllToAllV: elements from one rank to another
}

// Reduces says whether the kind has an operator, Rooted whether it has a root.
func (k *Call) Reduces() bool {
	switch k.Kind {
	case ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindReduceScatterV:
		return true
	}
	return false
}

func (k *Call) Rooted() bool {
	switch k.Kind {
	case ccl.KindReduce, ccl.KindBroadcast, ccl.KindGather, ccl.KindGatherV, ccl.KindScatter, ccl.KindScatterV:
		return true
	}
	return false
}

// Block is how many elements the block of rank r has, Offset where it begins.
func (k *Call) Block(r int) int {
	if k.Counts != nil {
		return k.Counts[r]
	}
	return k.Count
}

func (k *Call) Offset(r int) (at int) {
	for q := range r {
		at += k.Block(q)
	}
	return at
}

// rows are AllToAllV's counts on rank.
func (k *Call) rows(n, rank int) (sc, dc []int) {
	for r := range n {
		dc = append(dc, k.Matrix[r][rank])
	}
	return k.Matrix[rank], dc
}

// Lengths are those of src and dst on rank, and where in the longer the shorter begins if the call
// is in place. A buffer that has no meaning on rank is 0 long; so is src of Broadcast.
func (k *Call) Lengths(n, rank int) (src, dst, part int) {
	block, whole, at := k.Block(rank), k.Offset(n), k.Offset(rank)
	switch k.Kind {
	case ccl.KindAllReduce, ccl.KindReduce, ccl.KindSend, ccl.KindSendRecv:
		src, dst = k.Count, k.Count
	case ccl.KindBroadcast:
		return 0, k.Count, 0
	case ccl.KindReduceScatter, ccl.KindReduceScatterV, ccl.KindScatter, ccl.KindScatterV:
		src, dst, part = whole, block, at
	case ccl.KindAllGather, ccl.KindAllGatherV, ccl.KindGather, ccl.KindGatherV:
		src, dst, part = block, whole, at
	case ccl.KindAllToAll:
		src, dst = n*k.Count, n*k.Count
	case ccl.KindAllToAllV:
		for r := range n {
			src += k.Matrix[rank][r]
			dst += k.Matrix[r][rank]
		}
	}
	if !k.Rooted() || rank == k.Root {
		return src, dst, part
	}
	if k.Kind == ccl.KindScatter || k.Kind == ccl.KindScatterV {
		return 0, dst, 0
	}
	return src, 0, 0
}

// Want is what dst of rank holds after the call; nil where it is left alone. moved are count
// elements, from at on, of what rank from gives, and reduced are those of the reduction over all
// ranks.
func Want[T any](k *Call, n, rank int, moved func(from, at, count int) []T, reduced func(at, count int) []T) (v []T) {
	_, dst, _ := k.Lengths(n, rank)
	if dst == 0 {
		return nil
	}
	switch k.Kind {
	case ccl.KindAllReduce, ccl.KindReduce:
		return reduced(0, k.Count)
	case ccl.KindReduceScatter, ccl.KindReduceScatterV:
		return reduced(k.Offset(rank), k.Block(rank))
	case ccl.KindBroadcast:
		return moved(k.Root, 0, k.Count)
	case ccl.KindScatter, ccl.KindScatterV:
		return moved(k.Root, k.Offset(rank), k.Block(rank))
	case ccl.KindSend, ccl.KindSendRecv:
		return moved((rank+n-1)%n, 0, k.Count)
	}
	for r := range n {
		at, count := 0, k.Block(r)
		switch k.Kind {
		case ccl.KindAllToAll:
			at = rank * k.Count
		case ccl.KindAllToAllV:
			for q := range rank {
				at += k.Matrix[r][q]
			}
			count = k.Matrix[r][rank]
		}
		v = append(v, moved(r, at, count)...)
	}
	return v
}

// Make makes the call on c and waits for it. Of Send and Recv each rank makes one to the next and from the one before.
func Make[T ccl.Element](ctx context.Context, c *ccl.Comm, k *Call, dst, src []T) error {
	n, rank := c.Size(), c.Rank()
	next, prev := (rank+1)%n, (rank+n-1)%n
	switch k.Kind {
	case ccl.KindAllReduce:
		return ccl.AllReduce(ctx, c, dst, src, k.Op)
	case ccl.KindReduce:
		return ccl.Reduce(ctx, c, dst, src, k.Op, k.Root)
	case ccl.KindReduceScatter:
		return ccl.ReduceScatter(ctx, c, dst, src, k.Op)
	case ccl.KindReduceScatterV:
		return ccl.ReduceScatterV(ctx, c, dst, src, k.Counts, k.Op)
	case ccl.KindBroadcast:
		return ccl.Broadcast(ctx, c, dst, k.Root)
	case ccl.KindAllGather:
		return ccl.AllGather(ctx, c, dst, src)
	case ccl.KindAllGatherV:
		return ccl.AllGatherV(ctx, c, dst, k.Counts, src)
	case ccl.KindGather:
		return ccl.Gather(ctx, c, dst, src, k.Root)
	case ccl.KindGatherV:
		return ccl.GatherV(ctx, c, dst, k.Counts, src, k.Root)
	case ccl.KindScatter:
		return ccl.Scatter(ctx, c, dst, src, k.Root)
	case ccl.KindScatterV:
		return ccl.ScatterV(ctx, c, dst, src, k.Counts, k.Root)
	case ccl.KindAllToAll:
		return ccl.AllToAll(ctx, c, dst, src)
	case ccl.KindAllToAllV:
		sc, dc := k.rows(n, rank)
		return ccl.AllToAllV(ctx, c, dst, dc, src, sc)
	case ccl.KindSendRecv:
		return ccl.SendRecv(ctx, c, dst, prev, src, next)
	case ccl.KindSend:
		if n == 1 {
			return ccl.SendRecv(ctx, c, dst, 0, src, 0)
		}
		if rank%2 == 0 {
			if err := ccl.Send(ctx, c, src, next); err != nil {
				return err
			}
			return ccl.Recv(ctx, c, dst, prev)
		}
		if err := ccl.Recv(ctx, c, dst, prev); err != nil {
			return err
		}
		return ccl.Send(ctx, c, src, next)
	}
	return ccl.Barrier(ctx, c)
}

// Issue issues the call of rank of n to q. Send and Recv are a group.
func Issue(q ccl.Queue, k *Call, n, rank int, dst, src ccl.Buf) ccl.Work {
	next, prev := (rank+1)%n, (rank+n-1)%n
	switch k.Kind {
	case ccl.KindAllReduce:
		return q.AllReduce(dst, src, k.Op)
	case ccl.KindReduce:
		return q.Reduce(dst, src, k.Op, k.Root)
	case ccl.KindReduceScatter:
		return q.ReduceScatter(dst, src, k.Op)
	case ccl.KindReduceScatterV:
		return q.ReduceScatterV(dst, src, k.Counts, k.Op)
	case ccl.KindBroadcast:
		return q.Broadcast(dst, k.Root)
	case ccl.KindAllGather:
		return q.AllGather(dst, src)
	case ccl.KindAllGatherV:
		return q.AllGatherV(dst, k.Counts, src)
	case ccl.KindGather:
		return q.Gather(dst, src, k.Root)
	case ccl.KindGatherV:
		return q.GatherV(dst, k.Counts, src, k.Root)
	case ccl.KindScatter:
		return q.Scatter(dst, src, k.Root)
	case ccl.KindScatterV:
		return q.ScatterV(dst, src, k.Counts, k.Root)
	case ccl.KindAllToAll:
		return q.AllToAll(dst, src)
	case ccl.KindAllToAllV:
		sc, dc := k.rows(n, rank)
		return q.AllToAllV(dst, dc, src, sc)
	case ccl.KindSendRecv:
		return q.SendRecv(dst, prev, src, next)
	case ccl.KindSend:
		return q.Group(func(g ccl.Queue) error {
			g.Send(src, next)
			g.Recv(dst, prev)
			return nil
		})
	}
	return q.Barrier()
}
