package campaign

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// A call is one collective, the same on all ranks of its Comm.
type call struct {
	kind   ccl.Kind
	elem   *elem
	op     ccl.Op
	factor float64 // of Comm.Scaled in the place of op; 0: none
	tiny   bool    // the numbers are subnormal
	count  int     // elements of the vector, or of a rank's block
	root   int
	counts []int // of V kinds: of each rank; of AllToAllV: from rank a to rank b at a*n+b
	salt   uint64
}

func (k call) String() string {
	text := fmt.Sprintf("%v %s x %d root %d", k.kind, k.elem.name, k.count, k.root)
	if k.reduces() {
		text += " " + k.op.String()
	}
	if k.factor != 0 {
		text += fmt.Sprintf(" scaled by %g, tiny %v", k.factor, k.tiny)
	}
	return text
}

var kinds = []ccl.Kind{ccl.KindAllReduce, ccl.KindAllReduce, ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindReduceScatterV,
	ccl.KindBroadcast, ccl.KindAllGather, ccl.KindAllGatherV, ccl.KindGather, ccl.KindGatherV, ccl.KindScatter, ccl.KindScatterV,
	ccl.KindAllToAll, ccl.KindAllToAllV, ccl.KindSendRecv, ccl.KindSend, ccl.KindBarrier}

func (k call) reduces() bool {
	switch k.kind {
	case ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindReduceScatterV:
		return true
	}
	return false
}

// newCall draws a call of n ranks. most is the most bytes of a rank's largest buffer.
func newCall(rnd *rand.Rand, n, most int) call {
	k := call{kind: kinds[rnd.IntN(len(kinds))], elem: &elems[rnd.IntN(len(elems))], root: rnd.IntN(n), salt: rnd.Uint64()}
	for k.reduces() && len(k.elem.ops) == 0 {
		k.elem = &elems[rnd.IntN(len(elems))]
	}
	e := k.elem
	if k.reduces() {
		k.op = e.ops[rnd.IntN(len(e.ops))]
		if e.scales && rnd.IntN(4) == 0 {
			k.op, k.tiny = ccl.Sum, rnd.IntN(2) == 0
			k.factor = []float64{1, 2, 1024, .5, 0x1p-10}[rnd.IntN(5-2*is(k.tiny))]
		}
	}
	limit := most / e.size / n
	switch rnd.IntN(5) {
	case 0:
		k.count = rnd.IntN(3)
	case 1, 2:
		k.count = rnd.IntN(min(300, limit))
	case 3:
		k.count = rnd.IntN(limit/8 + 1)
	case 4:
		k.count = rnd.IntN(limit + 1)
	}
	switch k.kind {
	case ccl.KindReduceScatterV, ccl.KindAllGatherV, ccl.KindGatherV, ccl.KindScatterV:
		k.counts = make([]int, n)
	case ccl.KindAllToAllV:
		k.counts = make([]int, n*n)
	}
	for i := range k.counts {
		k.counts[i] = rnd.IntN(k.count+1) * is(rnd.IntN(4) != 0)
	}
	return k
}

func is(b bool) int {
	if b {
		return 1
	}
	return 0
}

// prepared is a call with its memory: made either way, then checked.
type prepared struct {
	call  call
	block func(ctx context.Context) error
	queue func(q ccl.Queue) ccl.Work
	// check says what is wrong after the call; "" if nothing is. After a failure only what no call writes is looked at.
	check func(failed bool) string
}

// sizes of a call on rank me, in elements: what it gives and gets, and at which element of the larger the smaller lies in place,
// -1 where the two cannot be one.
type sizes struct{ src, dst, part int }

func (k call) sizes(n, me int) sizes {
	atRoot := func(x int) int { return x * is(me == k.root) }
	before := sum(k.counts[:min(me, len(k.counts))])
	switch k.kind {
	case ccl.KindAllReduce:
		return sizes{k.count, k.count, 0}
	case ccl.KindReduce:
		return sizes{k.count, atRoot(k.count), 0}
	case ccl.KindReduceScatter:
		return sizes{n * k.count, k.count, me * k.count}
	case ccl.KindReduceScatterV:
		return sizes{sum(k.counts), k.counts[me], before}
	case ccl.KindBroadcast:
		return sizes{0, k.count, -1}
	case ccl.KindAllGather:
		return sizes{k.count, n * k.count, me * k.count}
	case ccl.KindAllGatherV:
		return sizes{k.counts[me], sum(k.counts), before}
	case ccl.KindGather:
		return sizes{k.count, atRoot(n * k.count), me * k.count}
	case ccl.KindGatherV:
		return sizes{k.counts[me], atRoot(sum(k.counts)), before}
	case ccl.KindScatter:
		return sizes{atRoot(n * k.count), k.count, me * k.count}
	case ccl.KindScatterV:
		return sizes{atRoot(sum(k.counts)), k.counts[me], before}
	case ccl.KindAllToAll:
		return sizes{n * k.count, n * k.count, 0}
	case ccl.KindAllToAllV:
		return sizes{sum(k.row(n, me)), sum(k.column(n, me)), -1}
	case ccl.KindSendRecv:
		return sizes{k.count, k.count, 0}
	case ccl.KindSend:
		return sizes{atRoot(k.count), k.count * is(n > 1 && me == (k.root+1)%n), -1}
	}
	return sizes{part: -1}
}

// row is what rank a sends in AllToAllV, column what rank b gets.
func (k call) row(n, a int) []int { return k.counts[a*n : a*n+n] }

func (k call) column(n, b int) (c []int) {
	for a := range n {
		c = append(c, k.counts[a*n+b])
	}
	return c
}

func sum(x []int) (s int) {
	for _, v := range x {
		s += v
	}
	return s
}

// want is what dst must hold on rank me.
func want[T ccl.Element](k call, a arithmetic[T], n, me int) (w []T) {
	moves := func(r, from, count int) {
		for i := range count {
			w = append(w, moved[T](k.salt, r, from+i))
		}
	}
	folds := func(from, count int) {
		for i := range count {
			w = append(w, a.folded(k, n, from+i))
		}
	}
	z := k.sizes(n, me)
	switch k.kind {
	case ccl.KindAllReduce, ccl.KindReduce:
		folds(0, z.dst)
	case ccl.KindReduceScatter, ccl.KindReduceScatterV:
		folds(z.part, z.dst)
	case ccl.KindBroadcast, ccl.KindSend:
		moves(k.root, 0, z.dst)
	case ccl.KindScatter, ccl.KindScatterV:
		moves(k.root, z.part, z.dst)
	case ccl.KindAllGather, ccl.KindGather:
		for r := range n * is(z.dst > 0) {
			moves(r, 0, k.count)
		}
	case ccl.KindAllGatherV, ccl.KindGatherV:
		for r := range n * is(z.dst > 0) {
			moves(r, 0, k.counts[r])
		}
	case ccl.KindAllToAll:
		for r := range n {
			moves(r, me*k.count, k.count)
		}
	case ccl.KindAllToAllV:
		for r := range n {
			moves(r, sum(k.row(n, r)[:me]), k.row(n, r)[me])
		}
	case ccl.KindSendRecv:
		moves((me+n-1)%n, 0, k.count)
	}
	return w
}

// prepare lays the call's memory out on this rank.
func prepare[T ccl.Element](s *scene, k call, a arithmetic[T]) prepared {
	n, me := s.c.Size(), s.c.Rank()
	z, size := k.sizes(n, me), k.elem.size
	in := newPiece(s.own, s.arena, z.src*size, size)
	out := newPiece(s.own, s.arena, z.dst*size, size)
	src, dst := sliceOf[T](in), sliceOf[T](out)
	inPlace := z.part >= 0 && z.src > 0 && z.dst > 0 && s.own.IntN(3) == 0
	switch {
	case inPlace && z.src > z.dst:
		dst, out = src[z.part:z.part+z.dst], in
	case inPlace:
		src, in = dst[z.part:z.part+z.src], out
	}
	give := func(i int) T { return moved[T](k.salt, me, i) }
	if k.reduces() {
		give = func(i int) T { return a.given(k, n, me, i) }
	}
	for i := range src {
		src[i] = give(i)
	}
	if k.kind == ccl.KindBroadcast && me == k.root {
		for i := range dst {
			dst[i] = give(i)
		}
	}
	before := slices.Clone(src)
	p := prepared{call: k}
	p.block = func(ctx context.Context) error { return block(ctx, s.c, k, s.op(k), dst, src) }
	p.queue = func(q ccl.Queue) ccl.Work { return queue(q, k, s.op(k), n, me, ccl.BufOf(dst), ccl.BufOf(src)) }
	p.check = func(failed bool) string {
		wrong := ""
		switch {
		case !out.intact() || !in.intact():
			wrong = "what lies beside a slice was written"
		case !failed:
			wrong = differ(dst, want(k, a, n, me))
		}
		if wrong == "" && !inPlace && !bytes.Equal(bytesOf(src), bytesOf(before)) {
			wrong = "src was written"
		}
		if wrong != "" {
			wrong = fmt.Sprintf("%v, rank %d of %d, in place %v, %v: %s", k, me, n, inPlace, s.c, wrong)
		}
		return wrong
	}
	return p
}

// op is the operator of a call on the scene's Comm.
func (s *scene) op(k call) ccl.Op {
	if k.factor != 0 {
		return s.c.Scaled(k.factor)
	}
	return k.op
}

// block makes the call as a blocking one.
func block[T ccl.Element](ctx context.Context, c *ccl.Comm, k call, op ccl.Op, dst, src []T) error {
	n, me := c.Size(), c.Rank()
	switch k.kind {
	case ccl.KindAllReduce:
		return ccl.AllReduce(ctx, c, dst, src, op)
	case ccl.KindReduce:
		return ccl.Reduce(ctx, c, dst, src, op, k.root)
	case ccl.KindReduceScatter:
		return ccl.ReduceScatter(ctx, c, dst, src, op)
	case ccl.KindReduceScatterV:
		return ccl.ReduceScatterV(ctx, c, dst, src, k.counts, op)
	case ccl.KindBroadcast:
		return ccl.Broadcast(ctx, c, dst, k.root)
	case ccl.KindAllGather:
		return ccl.AllGather(ctx, c, dst, src)
	case ccl.KindAllGatherV:
		return ccl.AllGatherV(ctx, c, dst, k.counts, src)
	case ccl.KindGather:
		return ccl.Gather(ctx, c, dst, src, k.root)
	case ccl.KindGatherV:
		return ccl.GatherV(ctx, c, dst, k.counts, src, k.root)
	case ccl.KindScatter:
		return ccl.Scatter(ctx, c, dst, src, k.root)
	case ccl.KindScatterV:
		return ccl.ScatterV(ctx, c, dst, src, k.counts, k.root)
	case ccl.KindAllToAll:
		return ccl.AllToAll(ctx, c, dst, src)
	case ccl.KindAllToAllV:
		return ccl.AllToAllV(ctx, c, dst, k.column(n, me), src, k.row(n, me))
	case ccl.KindSendRecv:
		return ccl.SendRecv(ctx, c, dst, (me+n-1)%n, src, (me+1)%n)
	case ccl.KindSend:
		switch {
		case n > 1 && me == k.root:
			return ccl.Send(ctx, c, src, (me+1)%n)
		case n > 1 && me == (k.root+1)%n:
			return ccl.Recv(ctx, c, dst, k.root)
		}
		return nil
	}
	return ccl.Barrier(ctx, c)
}

// queue makes the call on a Queue.
func queue(q ccl.Queue, k call, op ccl.Op, n, me int, dst, src ccl.Buf) ccl.Work {
	switch k.kind {
	case ccl.KindAllReduce:
		return q.AllReduce(dst, src, op)
	case ccl.KindReduce:
		return q.Reduce(dst, src, op, k.root)
	case ccl.KindReduceScatter:
		return q.ReduceScatter(dst, src, op)
	case ccl.KindReduceScatterV:
		return q.ReduceScatterV(dst, src, k.counts, op)
	case ccl.KindBroadcast:
		return q.Broadcast(dst, k.root)
	case ccl.KindAllGather:
		return q.AllGather(dst, src)
	case ccl.KindAllGatherV:
		return q.AllGatherV(dst, k.counts, src)
	case ccl.KindGather:
		return q.Gather(dst, src, k.root)
	case ccl.KindGatherV:
		return q.GatherV(dst, k.counts, src, k.root)
	case ccl.KindScatter:
		return q.Scatter(dst, src, k.root)
	case ccl.KindScatterV:
		return q.ScatterV(dst, src, k.counts, k.root)
	case ccl.KindAllToAll:
		return q.AllToAll(dst, src)
	case ccl.KindAllToAllV:
		return q.AllToAllV(dst, k.column(n, me), src, k.row(n, me))
	case ccl.KindSendRecv:
		return q.SendRecv(dst, (me+n-1)%n, src, (me+1)%n)
	case ccl.KindSend:
		switch {
		case n > 1 && me == k.root:
			return q.Send(src, (me+1)%n)
		case n > 1 && me == (k.root+1)%n:
			return q.Recv(dst, k.root)
		}
		return ccl.Work{}
	}
	return q.Barrier()
}
