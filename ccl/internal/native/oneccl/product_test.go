//go:build oneccl && cgo && linux

package oneccl_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"testing"

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

// check compares count elements from element first of a buffer, and that all behind them is as expect says.
func (o *one) check(what string, at uintptr, count int, value func(i int) int) error {
	o.checks++
	got, want := make([]byte, count*o.typ.Size()), make([]byte, count*o.typ.Size())
	o.mem.get(got, at)
	for i := range count {
		put(want, o.typ, i, value(i))
	}
	if string(got) == string(want) {
		return nil
	}
	wrong, first := 0, -1
	for i := range count {
		s := o.typ.Size()
		if string(got[i*s:(i+1)*s]) != string(want[i*s:(i+1)*s]) {
			if wrong++; first < 0 {
				first = i
			}
		}
	}
	s := o.typ.Size()
	return fmt.Errorf("rank %d of %d: %s %v %v in place %v: %d of %d wrong; element %d is %x, not %x",
		o.Rank(), o.Size(), what, o.typ, o.op, o.inPlace, wrong, count, first, got[first*s:(first+1)*s], want[first*s:(first+1)*s])
}

// behind checks that nothing was written behind count elements.
func (o *one) behind(what string, at uintptr, count int) error {
	b := make([]byte, 8)
	o.mem.get(b, at+uintptr(count*o.typ.Size()))
	if string(b) != "UUUUUUUU" {
		return fmt.Errorf("rank %d of %d: %s %v: bytes behind the result were overwritten: %x", o.Rank(), o.Size(), what, o.typ, b)
	}
	return nil
}

func product(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
	var mem memory = &hostMemory{r: r, e: e}
	host := os.Getenv("GOCCL_TEST_DEVICE") == ""
	if !host {
		q, err := sycl.NewQueue(0, false)
		if err != nil {
			return err
		}
		mem = &deviceMemory{e: e, q: q}
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
					if err := e.Supports(op.AllReduce, op.Type(typ), op.Op(o.op), host); err != nil {
						continue
					}
					if err := o.reductions(count); err != nil {
						return err
					}
				}
				o.op = ccl.Sum
				if err := o.moves(count); err != nil {
					return err
				}
			}
		}
	}
	o.typ = ccl.TypeInt32
	if err := o.groups(); err != nil {
		return err
	}
	if r.Rank() == 0 {
		fmt.Println(r.lib.Version, "checks:", o.checks)
	}
	mem.free()
	if d, ok := mem.(*deviceMemory); ok && d.first != nil {
		return d.first
	}
	return errors.Join(r.barrier(), e.Close())
}

// call makes one call of this type and operator.
func (o *one) call(kind op.Kind, count int, f func(c *op.Call)) error {
	c := op.Call{Head: op.Head{Record: op.Record{Kind: kind, Type: op.Type(o.typ), Op: op.Op(o.op), Root: -1, Count: uint64(count)}}}
	f(&c)
	if err := o.mem.call(&c); err != nil {
		return fmt.Errorf("rank %d of %d: %v %v %v x %d: %w", o.Rank(), o.Size(), ccl.Kind(kind), o.typ, o.op, count, err)
	}
	return nil
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

func (o *one) reductions(count int) error {
	n, me := o.Size(), o.Rank()
	dst := o.in(o.src, o.dst, 0)
	o.fill(o.src, count, o.mine)
	if err := o.call(op.AllReduce, count, func(c *op.Call) { c.SrcAt, c.DstAt = o.src, dst }); err != nil {
		return err
	}
	if err := errors.Join(o.check("AllReduce", dst, count, o.want), o.behind("AllReduce", o.src, count)); err != nil {
		return err
	}
	for root := range n {
		if root > 0 && root < n-1 && (count > 5 || n > runtime.NumCPU()) {
			continue
		}
		o.fill(o.src, count, o.mine)
		err := o.call(op.Reduce, count, func(c *op.Call) {
			c.Root, c.SrcAt = int32(root), o.src
			if me == root {
				c.DstAt = dst
			}
		})
		if err != nil {
			return err
		}
		if me == root {
			err = o.check("Reduce", dst, count, o.want)
		} else {
			err = o.check("Reduce's input", o.src, count, o.mine)
		}
		if err != nil {
			return err
		}
	}
	o.fill(o.src, count*n, o.mine)
	dst = o.in(o.src, o.dst, me*count)
	if err := o.call(op.ReduceScatter, count, func(c *op.Call) { c.SrcAt, c.DstAt = o.src, dst }); err != nil {
		return err
	}
	if err := o.check("ReduceScatter", dst, count, func(i int) int { return o.want(i + me*count) }); err != nil {
		return err
	}
	counts, before, total := o.unequal(count / 2)
	o.fill(o.src, total, o.mine)
	dst = o.in(o.src, o.dst, before[me])
	if err := o.call(op.ReduceScatterV, total, func(c *op.Call) { c.SrcAt, c.DstAt, c.DC = o.src, dst, counts }); err != nil {
		return err
	}
	return o.check("ReduceScatterV", dst, counts[me], func(i int) int { return o.want(i + before[me]) })
}

func (o *one) moves(count int) error {
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
	if err := o.call(op.AllGather, count, func(c *op.Call) { c.SrcAt, c.DstAt = src, o.dst }); err != nil {
		return err
	}
	if err := errors.Join(o.check("AllGather", o.dst, n*count, each), o.behind("AllGather", o.dst, n*count)); err != nil {
		return err
	}
	src = o.in(o.dst, o.src, before[me])
	o.fill(o.dst, 0, nil)
	o.mem.put(src, o.bytes(counts[me], o.mine))
	if err := o.call(op.AllGatherV, total, func(c *op.Call) { c.SrcAt, c.DstAt, c.DC = src, o.dst, counts }); err != nil {
		return err
	}
	if err := errors.Join(o.check("AllGatherV", o.dst, total, unequal), o.behind("AllGatherV", o.dst, total)); err != nil {
		return err
	}

	dst := o.in(o.src, o.dst, 0)
	to := func(from, to, i int) int { return (i + 3*to + 5*from) % 50 }
	o.fill(o.src, n*count, func(i int) int { return to(me, i/max(count, 1), i%max(count, 1)) })
	if err := o.call(op.AllToAll, count, func(c *op.Call) { c.SrcAt, c.DstAt = o.src, dst }); err != nil {
		return err
	}
	if err := o.check("AllToAll", dst, n*count, func(i int) int { return to(i/count, me, i%count) }); err != nil {
		return err
	}
	if err := o.allToAllV(count); err != nil {
		return err
	}

	if !o.inPlace {
		o.fill(o.src, count, o.mine)
		from := (me + n - 1) % n
		sendRecv := func(c *op.Call) { c.SrcAt, c.DstAt, c.SrcN, c.To, c.Root = o.src, o.dst, count, (me+1)%n, int32(from) }
		if err := o.call(op.SendRecv, count, sendRecv); err != nil {
			return err
		}
		if err := o.check("SendRecv", o.dst, count, func(i int) int { return o.value(from, i) }); err != nil {
			return err
		}
		if n > 1 && me < 2 {
			kind := [...]op.Kind{op.Send, op.Recv}[me]
			if err := o.call(kind, count, func(c *op.Call) { c.SrcAt, c.DstAt, c.Root = o.src, o.dst, int32(1-me) }); err != nil {
				return err
			}
		}
		if me == 1 {
			if err := o.check("Recv", o.dst, count, func(i int) int { return o.value(0, i) }); err != nil {
				return err
			}
		}
	} else {
		o.fill(o.src, count, o.mine)
		from := (me + 1) % n
		sendRecv := func(c *op.Call) {
			c.SrcAt, c.DstAt, c.SrcN, c.To, c.Root = o.src, o.src, count, (me+n-1)%n, int32(from)
		}
		if err := o.call(op.SendRecv, count, sendRecv); err != nil {
			return err
		}
		if err := o.check("SendRecv", o.src, count, func(i int) int { return o.value(from, i) }); err != nil {
			return err
		}
	}
	if err := o.call(op.Barrier, 0, func(c *op.Call) { c.Type = op.None }); err != nil {
		return err
	}

	for root := range n {
		if root > 0 && root < n-1 && (count > 5 || n > runtime.NumCPU()) {
			continue
		}
		if err := o.rooted(root, count, each, unequal); err != nil {
			return err
		}
	}
	return nil
}

// bytes are elements as they lie in memory.
func (o *one) bytes(count int, value func(i int) int) []byte {
	b := make([]byte, count*o.typ.Size())
	for i := range count {
		put(b, o.typ, i, value(i))
	}
	return b
}

func (o *one) rooted(root, count int, each, unequal func(i int) int) error {
	n, me := o.Size(), o.Rank()
	counts, before, total := o.unequal(count / 2)
	o.fill(o.src, count, o.mine)
	if err := o.call(op.Broadcast, count, func(c *op.Call) { c.DstAt, c.SrcAt, c.Root = o.src, o.src, int32(root) }); err != nil {
		return err
	}
	if err := errors.Join(o.check("Broadcast", o.src, count, func(i int) int { return o.value(root, i) }), o.behind("Broadcast", o.src, count)); err != nil {
		return err
	}
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
		if err := o.call(kind, count, gather); err != nil {
			return err
		}
		if me == root {
			if err := errors.Join(o.check("Gather", o.dst, all, want), o.behind("Gather", o.dst, all)); err != nil {
				return err
			}
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
		if err := o.call(back, count, scatter); err != nil {
			return err
		}
		if err := o.check("Scatter", into, mine, o.mine); err != nil {
			return err
		}
	}
	return nil
}

func (o *one) allToAllV(count int) error {
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
	if err := o.call(op.AllToAllV, 0, func(c *op.Call) { c.SrcAt, c.DstAt, c.DC, c.SC = o.src, dst, dc, sc }); err != nil {
		return err
	}
	got := make([]byte, len(in))
	o.mem.get(got, dst)
	o.checks++
	if string(got) != string(in) {
		return fmt.Errorf("rank %d of %d: AllToAllV %v in place %v: wrong", me, n, o.typ, o.inPlace)
	}
	return nil
}

// groups makes several calls as one: messages in an order in which each alone would wait for ever.
func (o *one) groups() error {
	n, me := o.Size(), o.Rank()
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
	if err := o.mem.call(calls...); err != nil {
		return fmt.Errorf("rank %d: group: %w", me, err)
	}
	return errors.Join(
		o.check("group", o.dst, n*count, func(i int) int { return o.value(i/count, i%count) }),
		o.check("group's sum", sum, count, o.want))
}
