//go:build oneccl && cgo && linux

package oneccl_test

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/sycl"
)

func init() { roles["product"] = product }

// Every kind, type and operator, in and out of place, all roots, exact values.
func TestProduct(t *testing.T) {
	need(t)
	sizes := []int{1, 2, 3, 4}
	if n, err := strconv.Atoi(os.Getenv("GOCCL_TEST_RANKS")); err == nil {
		sizes = []int{n}
	} else if testing.Short() {
		sizes = []int{2}
	}
	for _, n := range sizes {
		t.Run(strconv.Itoa(n), func(t *testing.T) { t.Log(ranks(t, "product", n)) })
	}
}

// one is a rank's part in one kind of call.
type one struct {
	*rank
	mem      memory
	typ      ccl.Type
	op       ccl.Op
	inPlace  bool
	src, dst uintptr
	room     int // bytes of each
	checks   int
}

// value is element i of what rank r brings, want what op makes of all of them.
func (o *one) value(r, i int) int {
	switch o.op {
	case ccl.Prod:
		return (i+r)%3 + 1
	case ccl.Avg:
		return o.Size() * ((i+2*r)%4 + 1)
	}
	return (3*i+5*r)%7 + r + 1
}

func (o *one) want(i int) int {
	a := o.value(0, i)
	for r := 1; r < o.Size(); r++ {
		switch v := o.value(r, i); o.op {
		case ccl.Prod:
			a *= v
		case ccl.Min:
			a = min(a, v)
		case ccl.Max:
			a = max(a, v)
		default:
			a += v
		}
	}
	if o.op == ccl.Avg {
		a /= o.Size()
	}
	return a
}

// fill writes elements, and the pattern 0x55 behind them.
func (o *one) fill(at uintptr, count int, value func(i int) int) {
	b := make([]byte, o.room+8)
	for i := range b {
		b[i] = 0x55
	}
	for i := range count {
		put(b, o.typ, i, value(i))
	}
	o.mem.put(at, b)
}

// check compares count elements from the first of a buffer.
func (o *one) check(what string, at uintptr, count int, value func(i int) int) {
	o.checks++
	s, want := o.typ.Size(), o.bytes(count, value)
	got := make([]byte, len(want))
	o.mem.get(got, at)
	for i := range count {
		if string(got[i*s:(i+1)*s]) != string(want[i*s:(i+1)*s]) {
			require.FailNow(o, "wrong", "rank %d of %d: %s %v %v in place %v: element %d of %d is %x, not %x",
				o.Rank(), o.Size(), what, o.typ, o.op, o.inPlace, i, count, got[i*s:(i+1)*s], want[i*s:(i+1)*s])
		}
	}
}

// whole is check, and that nothing was written behind the elements.
func (o *one) whole(what string, at uintptr, count int, value func(i int) int) {
	o.check(what, at, count, value)
	o.behind(what, at, count)
}

// behind checks that nothing was written behind count elements.
func (o *one) behind(what string, at uintptr, count int) {
	b := make([]byte, 8)
	o.mem.get(b, at+uintptr(count*o.typ.Size()))
	require.Equal(o, "UUUUUUUU", string(b), "rank %d of %d: %s %v: bytes behind the result were overwritten", o.Rank(), o.Size(), what, o.typ)
}

func product(r *rank) {
	e := r.join()
	var mem memory = &hostMemory{r: r, e: e}
	host := os.Getenv("GOCCL_TEST_DEVICE") == ""
	if !host {
		q, err := sycl.NewQueue(0, false)
		require.NoError(r, err)
		mem = &deviceMemory{r: r, e: e, q: q}
	}
	const most = 70001
	o := &one{rank: r, mem: mem, room: 8*most*r.Size() + 8}
	o.src, o.dst = mem.alloc(o.room), mem.alloc(o.room)
	crowded := r.Size() > runtime.NumCPU() // oneCCL spins: a call takes the time slices of all ranks
	for _, count := range []int{0, 1, 5, 1000, most} {
		for typ := ccl.TypeInt8; typ <= ccl.TypeFloat8E5M2; typ++ {
			if count == most && typ != ccl.TypeFloat32 && typ != ccl.TypeInt8 || crowded && count != 5 && typ != ccl.TypeFloat32 {
				continue
			}
			o.typ = typ
			for _, o.inPlace = range []bool{false, true} {
				for o.op = ccl.Sum; o.op <= ccl.Avg; o.op++ {
					if e.Supports(op.AllReduce, op.Type(typ), op.Op(o.op), host) == nil {
						o.reductions(count)
					}
				}
				o.op = ccl.Sum
				o.moves(count)
			}
		}
	}
	o.typ = ccl.TypeInt32
	o.groups()
	if r.Rank() == 0 {
		fmt.Println(r.lib.Version, "checks:", o.checks)
	}
	mem.free()
	r.barrier()
	require.NoError(r, e.Close())
}

// call makes one call of this type and operator.
func (o *one) call(kind op.Kind, count int, f func(c *op.Call)) {
	c := op.Call{Head: op.Head{Record: op.Record{Kind: kind, Type: op.Type(o.typ), Op: op.Op(o.op), Root: -1, Count: uint64(count)}}}
	f(&c)
	o.mem.call(&c)
}

// mine is this rank's own contribution.
func (o *one) mine(i int) int { return o.value(o.Rank(), i) }

// unequal are the counts of V kinds, some of them 0.
func (o *one) unequal(count int) (counts, before []int, total int) {
	for r := range o.Size() {
		before = append(before, total)
		counts = append(counts, (r+2)%3*count)
		total += counts[r]
	}
	return
}

// in is where in a whole a part lies, or the buffer for parts, by whether the call is in place.
func (o *one) in(whole, part uintptr, element int) uintptr {
	if o.inPlace {
		return whole + uintptr(element*o.typ.Size())
	}
	return part
}

func (o *one) reductions(count int) {
	n, me := o.Size(), o.Rank()
	dst := o.in(o.src, o.dst, 0)
	o.fill(o.src, count, o.mine)
	o.call(op.AllReduce, count, func(c *op.Call) { c.SrcAt, c.DstAt = o.src, dst })
	o.check("AllReduce", dst, count, o.want)
	o.behind("AllReduce", o.src, count)
	for root := range n {
		if root > 0 && root < n-1 && (count > 5 || n > runtime.NumCPU()) {
			continue
		}
		o.fill(o.src, count, o.mine)
		o.call(op.Reduce, count, func(c *op.Call) {
			c.Root, c.SrcAt = int32(root), o.src
			if me == root {
				c.DstAt = dst
			}
		})
		if me == root {
			o.check("Reduce", dst, count, o.want)
		} else {
			o.check("Reduce's input", o.src, count, o.mine)
		}
	}
	o.fill(o.src, count*n, o.mine)
	dst = o.in(o.src, o.dst, me*count)
	o.call(op.ReduceScatter, count, func(c *op.Call) { c.SrcAt, c.DstAt = o.src, dst })
	o.check("ReduceScatter", dst, count, func(i int) int { return o.want(i + me*count) })
	counts, before, total := o.unequal(count / 2)
	o.fill(o.src, total, o.mine)
	dst = o.in(o.src, o.dst, before[me])
	o.call(op.ReduceScatterV, total, func(c *op.Call) { c.SrcAt, c.DstAt, c.DC = o.src, dst, counts })
	o.check("ReduceScatterV", dst, counts[me], func(i int) int { return o.want(i + before[me]) })
}

func (o *one) moves(count int) {
	n, me := o.Size(), o.Rank()
	counts, before, total := o.unequal(count / 2)
	// each is element i of all ranks' blocks, which have count elements each.
	each := func(i int) int { return o.value(i/max(count, 1), i%max(count, 1)) }
	unequal := func(i int) int {
		r := n - 1
		for before[r] > i {
			r--
		}
		return o.value(r, i-before[r])
	}

	src := o.in(o.dst, o.src, me*count)
	o.fill(o.dst, 0, nil)
	o.mem.put(src, o.bytes(count, o.mine))
	o.call(op.AllGather, count, func(c *op.Call) { c.SrcAt, c.DstAt = src, o.dst })
	o.whole("AllGather", o.dst, n*count, each)
	src = o.in(o.dst, o.src, before[me])
	o.fill(o.dst, 0, nil)
	o.mem.put(src, o.bytes(counts[me], o.mine))
	o.call(op.AllGatherV, total, func(c *op.Call) { c.SrcAt, c.DstAt, c.DC = src, o.dst, counts })
	o.whole("AllGatherV", o.dst, total, unequal)

	dst := o.in(o.src, o.dst, 0)
	to := func(from, to, i int) int { return (i + 3*to + 5*from) % 50 }
	o.fill(o.src, n*count, func(i int) int { return to(me, i/max(count, 1), i%max(count, 1)) })
	o.call(op.AllToAll, count, func(c *op.Call) { c.SrcAt, c.DstAt = o.src, dst })
	o.check("AllToAll", dst, n*count, func(i int) int { return to(i/count, me, i%count) })
	o.allToAllV(count)

	o.fill(o.src, count, o.mine)
	next, from := (me+1)%n, (me+n-1)%n
	if o.inPlace {
		next, from = from, next
	}
	o.call(op.SendRecv, count, func(c *op.Call) { c.SrcAt, c.DstAt, c.SrcN, c.To, c.Root = o.src, dst, count, next, int32(from) })
	o.check("SendRecv", dst, count, func(i int) int { return o.value(from, i) })
	if !o.inPlace && n > 1 && me < 2 {
		kind := [...]op.Kind{op.Send, op.Recv}[me]
		o.call(kind, count, func(c *op.Call) { c.SrcAt, c.DstAt, c.Root = o.src, o.dst, int32(1-me) })
		if me == 1 {
			o.check("Recv", o.dst, count, func(i int) int { return o.value(0, i) })
		}
	}
	o.call(op.Barrier, 0, func(c *op.Call) { c.Type = op.None })

	for root := range n {
		if root > 0 && root < n-1 && (count > 5 || n > runtime.NumCPU()) {
			continue
		}
		o.rooted(root, count, each, unequal)
	}
}

// bytes are elements as they lie in memory.
func (o *one) bytes(count int, value func(i int) int) []byte {
	b := make([]byte, count*o.typ.Size())
	for i := range count {
		put(b, o.typ, i, value(i))
	}
	return b
}

func (o *one) rooted(root, count int, each, unequal func(i int) int) {
	n, me := o.Size(), o.Rank()
	counts, before, total := o.unequal(count / 2)
	o.fill(o.src, count, o.mine)
	o.call(op.Broadcast, count, func(c *op.Call) { c.DstAt, c.SrcAt, c.Root = o.src, o.src, int32(root) })
	o.whole("Broadcast", o.src, count, func(i int) int { return o.value(root, i) })
	for _, v := range []bool{false, true} {
		kind, at, mine, all, want := op.Gather, me*count, count, n*count, each
		back := op.Scatter
		if v {
			kind, at, mine, all, want, back = op.GatherV, before[me], counts[me], total, unequal, op.ScatterV
		}
		src := o.src
		if me == root {
			src = o.in(o.dst, o.src, at)
		}
		o.fill(o.dst, 0, nil)
		o.mem.put(src, o.bytes(mine, o.mine))
		gather := func(c *op.Call) {
			c.Root, c.SrcAt = int32(root), src
			if v {
				c.DC, c.Count = counts, uint64(total)
			}
			if me == root {
				c.DstAt = o.dst
			}
		}
		o.call(kind, count, gather)
		if me == root {
			o.whole("Gather", o.dst, all, want)
		}
		// What was gathered goes back.
		into := o.src
		if me == root {
			into = o.in(o.dst, o.src, at)
		}
		if into == o.src {
			o.fill(o.src, 0, nil)
		}
		scatter := func(c *op.Call) {
			c.Root, c.DstAt = int32(root), into
			if v {
				c.DC, c.Count = counts, uint64(total)
			}
			if me == root {
				c.SrcAt = o.dst
			}
		}
		o.call(back, count, scatter)
		o.check("Scatter", into, mine, o.mine)
	}
}

func (o *one) allToAllV(count int) {
	n, me := o.Size(), o.Rank()
	pair := func(from, to int) int { return (from*2 + to) % 3 * (count / 2) }
	value := func(from, to, i int) int { return (i + 3*to + 5*from) % 50 }
	var dc, sc []int
	var in, out []byte
	for p := range n {
		dc, sc = append(dc, pair(p, me)), append(sc, pair(me, p))
		in = append(in, o.bytes(dc[p], func(i int) int { return value(p, me, i) })...)
		out = append(out, o.bytes(sc[p], func(i int) int { return value(me, p, i) })...)
	}
	dst := o.in(o.src, o.dst, 0)
	o.fill(o.dst, 0, nil)
	o.mem.put(o.src, out)
	o.call(op.AllToAllV, 0, func(c *op.Call) { c.SrcAt, c.DstAt, c.DC, c.SC = o.src, dst, dc, sc })
	got := make([]byte, len(in))
	o.mem.get(got, dst)
	o.checks++
	require.True(o, bytes.Equal(in, got), "rank %d of %d: AllToAllV %v in place %v", me, n, o.typ, o.inPlace)
}

// groups makes several calls as one: messages in an order in which each alone would wait for ever.
func (o *one) groups() {
	n := o.Size()
	o.op = ccl.Sum
	const count = 3000
	o.fill(o.src, count, o.mine)
	o.fill(o.dst, 0, nil)
	block := uintptr(count * o.typ.Size())
	var calls []*op.Call
	for p := range n { // receives first, from all and from itself
		calls = append(calls, &op.Call{Head: op.Head{Record: op.Record{Kind: op.Recv, Type: op.Int32, Root: int32(p), Count: uint64(count)}, DstAt: o.dst + uintptr(p)*block}})
	}
	for p := range n {
		calls = append(calls, &op.Call{Head: op.Head{Record: op.Record{Kind: op.Send, Type: op.Int32, Root: int32(p), Count: uint64(count)}, SrcAt: o.src}})
	}
	sum := o.dst + uintptr(n)*block
	calls = append(calls, &op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Count: uint64(count), Root: -1}, SrcAt: o.src, DstAt: sum}})
	o.mem.call(calls...)
	o.check("group", o.dst, n*count, func(i int) int { return o.value(i/count, i%count) })
	o.check("group's sum", sum, count, o.want)
}
