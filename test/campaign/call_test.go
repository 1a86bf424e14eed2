package campaign

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/calltest"
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
	counts []int   // of V kinds: of each rank
	matrix [][]int // of AllToAllV: from one rank to another
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

// shared is k as tests of other packages have it.
func (k call) shared() *calltest.Call {
	return &calltest.Call{Kind: k.kind, Op: k.op, Root: k.root, Count: k.count, Counts: k.counts, Matrix: k.matrix}
}

func (k call) reduces() bool { return k.shared().Reduces() }

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
		for range n {
			k.matrix = append(k.matrix, make([]int, n))
		}
	}
	for _, counts := range append(k.matrix, k.counts) {
		for i := range counts {
			counts[i] = rnd.IntN(k.count+1) * is(rnd.IntN(4) != 0)
		}
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

func (k call) sizes(n, me int) (z sizes) {
	z.src, z.dst, z.part = k.shared().Lengths(n, me)
	switch k.kind {
	case ccl.KindAllToAllV:
		z.part = -1
	case ccl.KindSend: // of one rank to the next alone
		z.src *= is(me == k.root)
		z.dst *= is(n > 1 && me == (k.root+1)%n)
	}
	return z
}

// want is what dst must hold on rank me.
func want[T ccl.Element](k call, a arithmetic[T], n, me int) []T {
	if k.sizes(n, me).dst == 0 {
		return nil
	}
	each := func(count int, of func(i int) T) (w []T) {
		for i := range count {
			w = append(w, of(i))
		}
		return w
	}
	return calltest.Want(k.shared(), n, me, func(r, from, count int) []T {
		return each(count, func(i int) T { return moved[T](k.salt, r, from+i) })
	}, func(from, count int) []T {
		return each(count, func(i int) T { return a.folded(k, n, from+i) })
	})
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

// block makes the call as a blocking one, with the operator op.
func block[T ccl.Element](ctx context.Context, c *ccl.Comm, k call, op ccl.Op, dst, src []T) error {
	n, me := c.Size(), c.Rank()
	if k.kind == ccl.KindSend {
		switch {
		case n > 1 && me == k.root:
			return ccl.Send(ctx, c, src, (me+1)%n)
		case n > 1 && me == (k.root+1)%n:
			return ccl.Recv(ctx, c, dst, k.root)
		}
		return nil
	}
	k.op = op
	return calltest.Make(ctx, c, k.shared(), dst, src)
}

// queue makes the call on a Queue.
func queue(q ccl.Queue, k call, op ccl.Op, n, me int, dst, src ccl.Buf) ccl.Work {
	if k.kind == ccl.KindSend {
		switch {
		case n > 1 && me == k.root:
			return q.Send(src, (me+1)%n)
		case n > 1 && me == (k.root+1)%n:
			return q.Recv(dst, k.root)
		}
		return ccl.Work{}
	}
	k.op = op
	return calltest.Issue(q, k.shared(), n, me, dst, src)
}
