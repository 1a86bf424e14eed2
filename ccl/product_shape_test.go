package ccl_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// shape is one call, but for its type.
type shape struct {
	kind    ccl.Kind
	op      ccl.Op
	root    int
	count   int     // elements of the vector, or of one rank's block
	counts  []int   // of the V kinds: elements of each block
	matrix  [][]int // of AllToAllV: elements from one rank to another
	inPlace bool
	queued  bool
	number  uint64 // makes the values: no two calls of a Comm have the same
	standIn []int  // for wrong results: whose input is taken for that of a rank
}

func (s shape) String() string {
	text := fmt.Sprintf("call %d, %v of %d", s.number, s.kind, s.count)
	if s.counts != nil {
		text = fmt.Sprintf("call %d, %v of %v", s.number, s.kind, s.counts)
	}
	if s.matrix != nil {
		text = fmt.Sprintf("call %d, %v of %v", s.number, s.kind, s.matrix)
	}
	if s.reduces() {
		text += " " + s.op.String()
	}
	if s.rooted() {
		text += fmt.Sprintf(" root %d", s.root)
	}
	if s.inPlace {
		text += " in place"
	}
	if s.queued {
		text += " queued"
	}
	return text
}

func (s *shape) reduces() bool {
	switch s.kind {
	case ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindReduceScatterV:
		return true
	}
	return false
}

func (s *shape) rooted() bool {
	switch s.kind {
	case ccl.KindReduce, ccl.KindBroadcast, ccl.KindGather, ccl.KindGatherV, ccl.KindScatter, ccl.KindScatterV:
		return true
	}
	return false
}

// canBeInPlace is false where there is no such thing.
func (s *shape) canBeInPlace() bool {
	switch s.kind {
	case ccl.KindBroadcast, ccl.KindSend, ccl.KindSendRecv, ccl.KindBarrier:
		return false
	}
	return true
}

// uneven gives the V kinds counts for n ranks: at most s.count, some of them 0.
func (s *shape) uneven(n int) {
	some := func(i, j int) int {
		h := mix(s.number<<20 ^ uint64(i)<<10 ^ uint64(j))
		if h%4 == 0 {
			return 0
		}
		return int(h>>8) & 0xffffff % (s.count + 1)
	}
	switch s.kind {
	case ccl.KindReduceScatterV, ccl.KindAllGatherV, ccl.KindGatherV, ccl.KindScatterV:
		s.counts = make([]int, n)
		for r := range n {
			s.counts[r] = some(r, 0)
		}
	case ccl.KindAllToAllV:
		s.matrix = make([][]int, n)
		for r := range n {
			s.matrix[r] = make([]int, n)
			for q := range n {
				s.matrix[r][q] = some(r, q)
				if s.inPlace { // dst and src are as long
					s.matrix[r][q] = some(min(r, q), max(r, q))
				}
			}
		}
	}
}

// block is how many elements the block of rank r has.
func (s *shape) block(r int) int {
	if s.counts != nil {
		return s.counts[r]
	}
	return s.count
}

// offset is where the block of rank r begins.
func (s *shape) offset(r int) int {
	if s.counts == nil {
		return r * s.count
	}
	at := 0
	for _, n := range s.counts[:r] {
		at += n
	}
	return at
}

// ignored is the length of an argument that has no meaning on a rank.
const ignored = 3

// lengths are those of src and dst on rank, and where, in place, the shorter begins.
func (s *shape) lengths(n, rank int) (src, dst, part int) {
	off := s.rooted() && rank != s.root
	switch s.kind {
	case ccl.KindReduce:
		if off {
			if s.inPlace {
				return s.count, 0, 0
			}
			return s.count, ignored, 0
		}
		return s.count, s.count, 0
	case ccl.KindBroadcast:
		if off {
			return 0, s.count, 0
		}
		return s.count, s.count, 0
	case ccl.KindReduceScatter, ccl.KindReduceScatterV:
		return s.offset(n-1) + s.block(n-1), s.block(rank), s.offset(rank)
	case ccl.KindScatter, ccl.KindScatterV:
		if off {
			if s.inPlace {
				return 0, s.block(rank), 0
			}
			return ignored, s.block(rank), 0
		}
		return s.offset(n-1) + s.block(n-1), s.block(rank), s.offset(rank)
	case ccl.KindAllGather, ccl.KindAllGatherV, ccl.KindGather, ccl.KindGatherV:
		if off {
			if s.inPlace {
				return s.block(rank), 0, 0
			}
			return s.block(rank), ignored, 0
		}
		return s.block(rank), s.offset(n-1) + s.block(n-1), s.offset(rank)
	case ccl.KindAllToAll:
		return n * s.count, n * s.count, 0
	case ccl.KindAllToAllV:
		for r := range n {
			src += s.matrix[rank][r]
			dst += s.matrix[r][rank]
		}
		return src, dst, 0
	case ccl.KindBarrier:
		return 0, 0, 0
	}
	return s.count, s.count, 0
}

// toAndFrom are AllToAllV's counts on rank.
func (s *shape) toAndFrom(n, rank int) (sc, dc []int) {
	dc = make([]int, n)
	for r := range n {
		dc[r] = s.matrix[r][rank]
	}
	return s.matrix[rank], dc
}

// perform makes the call s.
func perform[T ccl.Number](ctx context.Context, c *ccl.Comm, s *shape, dst, src []T) error {
	if s.kind == ccl.KindBroadcast { // has one buffer
		copy(dst, src)
	}
	if s.queued {
		return s.queue(c, c.On(nil), ccl.BufOf(dst), ccl.BufOf(src)).Wait(ctx)
	}
	n, rank := c.Size(), c.Rank()
	next, prev := (rank+1)%n, (rank+n-1)%n
	switch s.kind {
	case ccl.KindAllReduce:
		return ccl.AllReduce(ctx, c, dst, src, s.op)
	case ccl.KindReduce:
		return ccl.Reduce(ctx, c, dst, src, s.op, s.root)
	case ccl.KindReduceScatter:
		return ccl.ReduceScatter(ctx, c, dst, src, s.op)
	case ccl.KindReduceScatterV:
		return ccl.ReduceScatterV(ctx, c, dst, src, s.counts, s.op)
	case ccl.KindBroadcast:
		return ccl.Broadcast(ctx, c, dst, s.root)
	case ccl.KindAllGather:
		return ccl.AllGather(ctx, c, dst, src)
	case ccl.KindAllGatherV:
		return ccl.AllGatherV(ctx, c, dst, s.counts, src)
	case ccl.KindGather:
		return ccl.Gather(ctx, c, dst, src, s.root)
	case ccl.KindGatherV:
		return ccl.GatherV(ctx, c, dst, s.counts, src, s.root)
	case ccl.KindScatter:
		return ccl.Scatter(ctx, c, dst, src, s.root)
	case ccl.KindScatterV:
		return ccl.ScatterV(ctx, c, dst, src, s.counts, s.root)
	case ccl.KindAllToAll:
		return ccl.AllToAll(ctx, c, dst, src)
	case ccl.KindAllToAllV:
		sc, dc := s.toAndFrom(n, rank)
		return ccl.AllToAllV(ctx, c, dst, dc, src, sc)
	case ccl.KindSendRecv:
		return ccl.SendRecv(ctx, c, dst, prev, src, next)
	case ccl.KindSend: // and Recv, around a ring
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
	case ccl.KindBarrier:
		return ccl.Barrier(ctx, c)
	}
	return fmt.Errorf("no kind %d", s.kind)
}

// queue issues the call s to q, a Queue of c.
func (s *shape) queue(c *ccl.Comm, q ccl.Queue, dst, src ccl.Buf) ccl.Work {
	n, rank := c.Size(), c.Rank()
	next, prev := (rank+1)%n, (rank+n-1)%n
	whole := src
	if s.inPlace && s.number%2 == 0 && (!s.rooted() || rank == s.root) {
		src = ccl.InPlace()
		if s.kind == ccl.KindReduceScatter || s.kind == ccl.KindReduceScatterV {
			dst = whole
		}
	}
	switch s.kind {
	case ccl.KindAllReduce:
		return q.AllReduce(dst, src, s.op)
	case ccl.KindReduce:
		return q.Reduce(dst, src, s.op, s.root)
	case ccl.KindReduceScatter:
		return q.ReduceScatter(dst, src, s.op)
	case ccl.KindReduceScatterV:
		return q.ReduceScatterV(dst, src, s.counts, s.op)
	case ccl.KindBroadcast:
		return q.Broadcast(dst, s.root)
	case ccl.KindAllGather:
		return q.AllGather(dst, src)
	case ccl.KindAllGatherV:
		return q.AllGatherV(dst, s.counts, src)
	case ccl.KindGather:
		return q.Gather(dst, src, s.root)
	case ccl.KindGatherV:
		return q.GatherV(dst, s.counts, src, s.root)
	case ccl.KindScatter:
		return q.Scatter(dst, whole, s.root)
	case ccl.KindScatterV:
		return q.ScatterV(dst, whole, s.counts, s.root)
	case ccl.KindAllToAll:
		return q.AllToAll(dst, src)
	case ccl.KindAllToAllV:
		sc, dc := s.toAndFrom(n, rank)
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
