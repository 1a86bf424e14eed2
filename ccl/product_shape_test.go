package ccl_test

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/calltest"
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

// call is s as tests of other packages have it.
func (s *shape) call() *calltest.Call {
	return &calltest.Call{Kind: s.kind, Op: s.op, Root: s.root, Count: s.count, Counts: s.counts, Matrix: s.matrix}
}

func (s *shape) reduces() bool { return s.call().Reduces() }
func (s *shape) rooted() bool  { return s.call().Rooted() }

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

// ignored is the length of an argument that has no meaning on a rank.
const ignored = 3

// lengths are those of src and dst on rank, and where, in place, the shorter begins.
func (s *shape) lengths(n, rank int) (src, dst, part int) {
	src, dst, part = s.call().Lengths(n, rank)
	off := s.rooted() && rank != s.root
	switch {
	case s.kind == ccl.KindBroadcast && !off:
		src = s.count
	case s.kind == ccl.KindBroadcast || !off || s.inPlace:
	case s.kind == ccl.KindScatter || s.kind == ccl.KindScatterV:
		src = ignored
	default:
		dst = ignored
	}
	return src, dst, part
}

// perform makes the call s.
func perform[T ccl.Number](ctx context.Context, c *ccl.Comm, s *shape, dst, src []T) error {
	if s.kind == ccl.KindBroadcast { // has one buffer
		copy(dst, src)
	}
	if s.queued {
		return s.queue(c, c.On(nil), ccl.BufOf(dst), ccl.BufOf(src)).Wait(ctx)
	}
	return calltest.Make(ctx, c, s.call(), dst, src)
}

// queue issues the call s to q, a Queue of c.
func (s *shape) queue(c *ccl.Comm, q ccl.Queue, dst, src ccl.Buf) ccl.Work {
	scatters := s.kind == ccl.KindScatter || s.kind == ccl.KindScatterV
	if s.inPlace && s.number%2 == 0 && !scatters && (!s.rooted() || c.Rank() == s.root) {
		if s.kind == ccl.KindReduceScatter || s.kind == ccl.KindReduceScatterV {
			dst = src
		}
		src = ccl.InPlace()
	}
	return calltest.Issue(q, s.call(), c.Size(), c.Rank(), dst, src)
}
