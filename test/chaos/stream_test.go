//go:build fault

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/calltest"
)

// A call is one collective, with an answer that every rank can tell without the others.
type call struct {
	kind  ccl.Kind
	typ   int // an index into runners
	op    ccl.Op
	count int // elements of the vector, or of each rank's block
	root  int
	queue bool
}

var kinds = []ccl.Kind{ccl.KindAllReduce, ccl.KindAllReduce, ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindBroadcast,
	ccl.KindAllGather, ccl.KindGather, ccl.KindScatter, ccl.KindAllToAll, ccl.KindAllGatherV, ccl.KindSendRecv, ccl.KindBarrier}

// runners make a call of each type.
var runners = []func(context.Context, *ccl.Comm, call, int) error{make1[float32], make1[int64], make1[uint8], make1[float64], make1[int16]}

func newCall(rnd *rand.Rand, n int) call {
	c := call{kind: kinds[rnd.IntN(len(kinds))], typ: rnd.IntN(len(runners)), op: ccl.Op(rnd.IntN(5)), root: rnd.IntN(n), queue: rnd.IntN(8) == 0}
	switch rnd.IntN(6) {
	case 0:
		c.count = rnd.IntN(2)
	case 1, 2, 3:
		c.count = rnd.IntN(3000)
	case 4:
		c.count = rnd.IntN(40_000)
	case 5:
		c.count = rnd.IntN(150_000)
	}
	return c
}

func (c call) String() string {
	return fmt.Sprintf("%v type %d op %v x %d root %d", c.kind, c.typ, c.op, c.count, c.root)
}

// changed is c with one field changed, such that its record is another.
func (c call) changed(seed uint64) call {
	d := c
	switch {
	case seed%5 == 0:
		d.count += 8 // the blocks of 8 ranks differ, too
	case seed%5 == 1:
		d.typ = (c.typ + 1) % len(runners)
	case seed%5 == 2 && c.reduces():
		d.op = (c.op + 1) % 5
	case seed%5 == 3 && c.kind == ccl.KindBroadcast:
		d.root++
	default:
		d.kind = ccl.KindAllReduce
		if c.kind == d.kind {
			d.kind = ccl.KindBroadcast
		}
	}
	return d
}

func (c call) reduces() bool {
	return c.kind == ccl.KindAllReduce || c.kind == ccl.KindReduce || c.kind == ccl.KindReduceScatter
}

func (c call) rooted() bool {
	return c.kind == ccl.KindReduce || c.kind == ccl.KindBroadcast || c.kind == ccl.KindGather || c.kind == ccl.KindScatter
}

// elements is the length of the vector, or of a rank's block of it.
func (c call) elements(n int) int {
	switch c.kind {
	case ccl.KindReduceScatter, ccl.KindAllGather, ccl.KindGather, ccl.KindScatter, ccl.KindAllToAll, ccl.KindAllGatherV:
		return c.count / n
	}
	return c.count
}

// looksLike reports whether the two have the same record among n ranks.
func (c call) looksLike(d call, n int) bool {
	same := c.kind == d.kind
	if c.kind != ccl.KindBarrier {
		same = same && c.typ == d.typ && c.elements(n) == d.elements(n)
	}
	if c.reduces() {
		same = same && c.op == d.op
	}
	if c.rooted() {
		same = same && c.root == d.root
	}
	return same
}

// value is element i of what rank r puts into a call of n ranks: small, so that sums and
// products are exact in every type, but for those that wrap.
func value[T ccl.Number](op ccl.Op, n, r, i int) T {
	switch op {
	case ccl.Prod:
		if (r+i)%n == 0 {
			return 2
		}
		return 1
	case ccl.Avg:
		return T(n * ((r + i) % 3))
	}
	return T((3*r + i) % 11)
}

// folded is element i of the reduction.
func folded[T ccl.Number](op ccl.Op, n, i int) T {
	x := value[T](op, n, 0, i)
	for r := 1; r < n; r++ {
		y := value[T](op, n, r, i)
		switch op {
		case ccl.Prod:
			x *= y
		case ccl.Min:
			x = min(x, y)
		case ccl.Max:
			x = max(x, y)
		default:
			x += y
		}
	}
	if op == ccl.Avg {
		x /= T(n)
	}
	return x
}

// errWrong says that a call returned no error and wrong results: what must never be.
type errWrong struct{ error }

// make1 makes the call on c, of whose job this is rank me, and checks the results.
func make1[T ccl.Number](ctx context.Context, c *ccl.Comm, k call, salt int) error {
	n, me := c.Size(), c.Rank()
	is := &calltest.Call{Kind: k.kind, Op: k.op, Root: k.root % n, Count: k.elements(n)}
	if k.kind == ccl.KindAllGatherV {
		for r := range n {
			is.Counts = append(is.Counts, is.Count*(r%3))
		}
	}
	each := func(count int, f func(i int) T) []T {
		s := make([]T, count)
		for i := range s {
			s[i] = f(i)
		}
		return s
	}
	moved := func(r, at, count int) []T {
		return each(count, func(i int) T { return value[T](ccl.Sum, n, r, at+i+salt) })
	}
	want := calltest.Want(is, n, me, moved, func(at, count int) []T {
		return each(count, func(i int) T { return folded[T](k.op, n, at+i) })
	})
	from, to, _ := is.Lengths(n, me)
	dst, src := make([]T, to), moved(me, 0, from)
	switch {
	case k.reduces():
		src = each(from, func(i int) T { return value[T](k.op, n, me, i) })
	case k.kind == ccl.KindBroadcast && me == is.Root:
		copy(dst, want)
	}
	var err error
	if k.kind == ccl.KindAllReduce && k.queue {
		err = c.On(nil).AllReduce(ccl.BufOf(dst), ccl.BufOf(src), k.op).Wait(ctx)
	} else {
		err = calltest.Make(ctx, c, is, dst, src)
	}
	if err != nil {
		return err
	}
	for i, w := range want {
		if dst[i] != w {
			return errWrong{fmt.Errorf("%v returned no error, but element %d is %v, not %v", k, i, dst[i], w)}
		}
	}
	return nil
}
