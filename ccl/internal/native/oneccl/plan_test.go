package oneccl

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
	"github.com/stretchr/testify/require"
)

// world carries out the plans of n ranks as the library would at its strictest: a send waits for its receive, and
// a collective for all ranks. Memory is int32, by address.
type world struct {
	t     *testing.T
	mem   [][]int32 // by rank: all of its memory
	plans []*plan
	next  []int
}

// words is the memory of each rank; scratch memory begins at scratchAt.
const words, scratchAt = 4096, 3072

func newWorld(t *testing.T, n int, has bool) *world {
	w := &world{t: t, next: make([]int, n)}
	for r := range n {
		w.mem = append(w.mem, make([]int32, words))
		for i := range w.mem[r] {
			w.mem[r][i] = int32(r*10000 + i)
		}
		w.plans = append(w.plans, &plan{rank: r, size: n, hasScatter: has, hasAllToAllV: has})
	}
	return w
}

// at is count elements of a rank's memory. Addresses are 4 times the index, from 4 on: 0 is none.
func (w *world) at(r int, addr, count uintptr) []int32 {
	require.Zero(w.t, addr%4)
	return w.mem[r][addr/4 : addr/4+count]
}

func (w *world) step(r int) *step {
	if w.next[r] == len(w.plans[r].steps) {
		return nil
	}
	return &w.plans[r].steps[w.next[r]]
}

// run carries out all plans, and fails where no rank can go on.
func (w *world) run() {
	for {
		done, moved := true, false
		for r := range w.plans {
			s := w.step(r)
			if s == nil {
				continue
			}
			done = false
			if w.one(r, s) {
				moved = true
			}
		}
		if done {
			return
		}
		if !moved {
			for r := range w.plans {
				w.t.Logf("rank %d at step %d: %+v", r, w.next[r], w.step(r))
			}
			require.FailNow(w.t, "the ranks wait for each other")
		}
	}
}

// one carries out rank r's step s if it can be.
func (w *world) one(r int, s *step) bool {
	switch s.what {
	case move:
		copy(w.at(r, s.dst, s.count/4), slices.Clone(w.at(r, s.src, s.count/4)))
		w.next[r]++
		return true
	case send:
		o := w.step(int(s.peer))
		if o == nil || o.what != recv || int(o.peer) != r {
			return false
		}
		require.Equal(w.t, s.count, o.count)
		require.NotEqual(w.t, r, int(s.peer), "a rank sends to itself")
		copy(w.at(int(s.peer), o.dst, o.count), w.at(r, s.src, s.count))
		w.next[r]++
		w.next[s.peer]++
		return true
	case recv:
		return false
	}
	all := make([]*step, len(w.plans))
	for i := range all {
		if all[i] = w.step(i); all[i] == nil || all[i].what != s.what {
			return false
		}
		w.next[i]++
	}
	w.collective(all)
	return true
}

func (w *world) collective(all []*step) {
	n := uintptr(len(all))
	in := make([][]int32, n)
	for r, s := range all {
		require.Equal(w.t, all[0].what, s.what)
		if s.what != allToAllV {
			require.Equal(w.t, all[0].count, s.count)
			require.Equal(w.t, all[0].peer, s.peer)
			require.Equal(w.t, all[0].typ, s.typ)
			require.Equal(w.t, all[0].op, s.op)
		}
		require.NotZero(w.t, s.src, "null is refused")
		require.NotZero(w.t, s.dst, "null is refused")
		length := s.count
		switch s.what {
		case reduceScatter, allToAll:
			length *= n
		case scatter:
			if r == int(s.peer) {
				length *= n
			}
		case allToAllV:
			length = sum(w.plans[r].counts[s.sc : s.sc+n])
		}
		in[r] = slices.Clone(w.at(r, s.src, length))
	}
	total := func(i uintptr) (x int32) {
		for _, v := range in {
			x += v[i]
		}
		return x
	}
	for r, s := range all {
		rank, c, root := uintptr(r), s.count, int(s.peer)
		switch s.what {
		case allReduce, reduce:
			if s.what == allReduce || r == root {
				for i := range c {
					w.at(r, s.dst, c)[i] = total(i)
				}
			}
		case broadcast:
			copy(w.at(r, s.dst, c), in[root])
		case reduceScatter:
			for i := range c {
				w.at(r, s.dst, c)[i] = total(rank*c + i)
			}
		case allGather:
			for p := range n {
				copy(w.at(r, s.dst+4*p*c, c), in[p])
			}
		case scatter:
			copy(w.at(r, s.dst, c), in[root][rank*c:])
		case allToAll:
			for p := range n {
				copy(w.at(r, s.dst+4*p*c, c), in[p][rank*c:])
			}
		case allToAllV:
			to := s.dst
			for p := range n {
				from := w.plans[p].counts[all[p].sc : all[p].sc+n]
				mine := w.plans[r].counts[s.dc+p]
				require.Equal(w.t, from[r], mine)
				copy(w.at(r, to, mine), in[p][sum(from[:r]):])
				to += 4 * mine
			}
		}
	}
}

func sum[T int | uintptr](x []T) (total T) {
	for _, v := range x {
		total += v
	}
	return total
}

// call plans calls(r) on every rank r and carries them out.
func (w *world) call(calls func(r int) []*op.Call) {
	for r, p := range w.plans {
		require.NoError(w.t, p.make(calls(r)))
		require.LessOrEqual(w.t, p.need, uintptr(4*(words-scratchAt)))
		p.place(4 * scratchAt)
	}
	clear(w.next)
	w.run()
}

// Where a rank's buffers are, in words.
const srcAt, dstAt = 64, 1024

func TestPlan(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for _, has := range []bool{false, true} {
			for _, inPlace := range []bool{false, true} {
				for _, count := range []int{0, 1, 7} {
					t.Run(fmt.Sprintf("%d/native=%v/in_place=%v/%d", n, has, inPlace, count), func(t *testing.T) {
						testPlan(t, n, has, inPlace, count)
					})
				}
			}
		}
	}
}

func testPlan(t *testing.T, n int, has, inPlace bool, count int) {
	counts, before := make([]int, n), make([]int, n)
	for r := range n {
		counts[r] = (r * 5 % 4) * count
		if r > 0 {
			before[r] = before[r-1] + counts[r-1]
		}
	}
	pair := func(from, to int) int { return (from + 2*to) % 3 * count } // AllToAllV's
	// value is what rank r has in word i before a call.
	value := func(r, i int) int32 { return int32(r*10000 + i) }
	dst, src := uintptr(4*dstAt), uintptr(4*srcAt)
	same := func(whole, part uintptr, at int) uintptr {
		if inPlace {
			return whole + uintptr(4*at)
		}
		return part
	}
	total := func(i int) (x int32) {
		for r := range n {
			x += value(r, i)
		}
		return x
	}
	// expect compares words from at on, of rank r.
	expect := func(w *world, r int, at uintptr, length int, want func(i int) int32) {
		t.Helper()
		got := w.at(r, at, uintptr(length))
		for i := range length {
			require.Equal(t, want(i), got[i], "rank %d, element %d", r, i)
		}
	}
	base := op.Call{Head: op.Head{Record: op.Record{Type: op.Int32, Op: op.Sum, Count: uint64(count), Root: -1}}}
	run := func(f func(r int, c *op.Call)) *world {
		w := newWorld(t, n, has)
		w.call(func(r int) []*op.Call {
			c := base
			f(r, &c)
			return []*op.Call{&c}
		})
		return w
	}

	w := run(func(r int, c *op.Call) { c.Kind, c.SrcAt, c.DstAt = op.AllReduce, src, same(src, dst, 0) })
	for r := range n {
		expect(w, r, same(src, dst, 0), count, func(i int) int32 { return total(srcAt + i) })
	}
	run(func(r int, c *op.Call) { c.Kind = op.Barrier })
	w = run(func(r int, c *op.Call) {
		c.Kind, c.SrcAt, c.DstAt = op.ReduceScatter, src, same(src, dst, r*count)
	})
	for r := range n {
		expect(w, r, same(src, dst, r*count), count, func(i int) int32 { return total(srcAt + r*count + i) })
	}
	w = run(func(r int, c *op.Call) {
		c.Kind, c.DC, c.SrcAt, c.DstAt = op.ReduceScatterV, counts, src, same(src, dst, before[r])
	})
	for r := range n {
		expect(w, r, same(src, dst, before[r]), counts[r], func(i int) int32 { return total(srcAt + before[r] + i) })
	}
	w = run(func(r int, c *op.Call) { c.Kind, c.DstAt, c.SrcAt = op.AllGather, dst, same(dst, src, r*count) })
	for r := range n {
		expect(w, r, dst, n*count, func(i int) int32 {
			p := i / count
			return value(p, int(same(dst, src, p*count))/4+i%count)
		})
	}
	// blocks is what Gather and AllGather of unequal blocks bring.
	blocks := func(w *world, r int) {
		t.Helper()
		for p := range n {
			expect(w, r, dst+uintptr(4*before[p]), counts[p], func(i int) int32 { return value(p, int(same(dst, src, before[p]))/4+i) })
		}
	}
	w = run(func(r int, c *op.Call) {
		c.Kind, c.DC, c.DstAt, c.SrcAt = op.AllGatherV, counts, dst, same(dst, src, before[r])
	})
	for r := range n {
		blocks(w, r)
	}
	w = run(func(r int, c *op.Call) { c.Kind, c.DstAt, c.SrcAt = op.AllToAll, same(src, dst, 0), src })
	for r := range n {
		expect(w, r, same(src, dst, 0), n*count, func(i int) int32 { return value(i/count, srcAt+r*count+i%count) })
	}
	w = run(func(r int, c *op.Call) {
		c.Kind, c.DstAt, c.SrcAt = op.AllToAllV, same(src, dst, 0), src
		for p := range n {
			c.DC, c.SC = append(c.DC, pair(p, r)), append(c.SC, pair(r, p))
		}
	})
	for r := range n {
		to := same(src, dst, 0)
		for p := range n {
			from := srcAt
			for q := range r {
				from += pair(p, q)
			}
			expect(w, r, to, pair(p, r), func(i int) int32 { return value(p, from+i) })
			to += uintptr(4 * pair(p, r))
		}
	}
	w = run(func(r int, c *op.Call) {
		c.Kind, c.SrcN, c.To, c.Root, c.DstAt, c.SrcAt = op.SendRecv, count, (r+1)%n, int32((r+n-1)%n), same(src, dst, 0), src
	})
	for r := range n {
		expect(w, r, same(src, dst, 0), count, func(i int) int32 { return value((r+n-1)%n, srcAt+i) })
	}

	for root := range n {
		w = run(func(r int, c *op.Call) { c.Kind, c.Root, c.DstAt, c.SrcAt = op.Broadcast, int32(root), dst, dst })
		for r := range n {
			expect(w, r, dst, count, func(i int) int32 { return value(root, dstAt+i) })
		}
		w = run(func(r int, c *op.Call) {
			c.Kind, c.Root, c.SrcAt = op.Reduce, int32(root), src
			if r == root {
				c.DstAt = same(src, dst, 0)
			}
		})
		expect(w, root, same(src, dst, 0), count, func(i int) int32 { return total(srcAt + i) })
		for r := range n {
			if r != root {
				expect(w, r, src, count, func(i int) int32 { return value(r, srcAt+i) })
			}
		}
		w = run(func(r int, c *op.Call) {
			c.Kind, c.Root, c.SrcAt = op.Gather, int32(root), src
			if r == root {
				c.DstAt, c.SrcAt = dst, same(dst, src, r*count)
			}
		})
		expect(w, root, dst, n*count, func(i int) int32 {
			if p := i / count; p != root || !inPlace {
				return value(p, srcAt+i%count)
			}
			return value(root, dstAt+i)
		})
		w = run(func(r int, c *op.Call) {
			c.Kind, c.Root, c.DC, c.DstAt, c.SrcAt = op.GatherV, int32(root), counts, 0, same(dst, src, before[r])
			if r == root {
				c.DstAt = dst
			}
		})
		blocks(w, root)
		w = run(func(r int, c *op.Call) {
			c.Kind, c.Root, c.DstAt = op.Scatter, int32(root), dst
			if r == root {
				c.SrcAt, c.DstAt = src, same(src, dst, r*count)
			}
		})
		for r := range n {
			at := dst
			if r == root {
				at = same(src, dst, r*count)
			}
			expect(w, r, at, count, func(i int) int32 { return value(root, srcAt+r*count+i) })
		}
		w = run(func(r int, c *op.Call) {
			c.Kind, c.Root, c.DC, c.DstAt = op.ScatterV, int32(root), counts, dst
			if r == root {
				c.SrcAt, c.DstAt = src, same(src, dst, before[r])
			}
		})
		for r := range n {
			at := dst
			if r == root {
				at = same(src, dst, before[r])
			}
			expect(w, r, at, counts[r], func(i int) int32 { return value(root, srcAt+before[r]+i) })
		}
	}
}

// Messages in any order and number are exchanged, by ranks that do one after another.
func TestPlanMessages(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rnd.IntN(7)
		calls, used := make([][]*op.Call, n), make([]uintptr, n)
		type sent struct{ from, to, at, got, count int }
		var all []sent
		place := func(r, count int) uintptr {
			used[r] += uintptr(4 * count)
			return 4*64 + used[r] - uintptr(4*count)
		}
		for range rnd.IntN(12) {
			from, to, count := rnd.IntN(n), rnd.IntN(n), rnd.IntN(5)
			a, b := place(from, count), place(to, count)
			all = append(all, sent{from, to, int(a / 4), int(b / 4), count})
			calls[from] = append(calls[from], &op.Call{Head: op.Head{Record: op.Record{Kind: op.Send, Type: op.Float32, Root: int32(to), Count: uint64(count)}, SrcAt: a}})
			calls[to] = append(calls[to], &op.Call{Head: op.Head{Record: op.Record{Kind: op.Recv, Type: op.Float32, Root: int32(from), Count: uint64(count)}, DstAt: b}})
		}
		w := newWorld(t, n, false)
		w.call(func(r int) []*op.Call { return calls[r] })
		for _, m := range all {
			for i := range m.count {
				require.Equal(t, int32(m.from*10000+m.at+i), w.mem[m.to][m.got+i])
			}
		}
	}
}

func TestPlanRefuses(t *testing.T) {
	for _, tc := range []struct {
		name  string
		calls []*op.Call
		want  string
	}{
		{"a send to itself", []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.Send, Type: op.Int8, Root: 1, Count: 1}, SrcAt: 8}}}, errSelf.Error()},
		{"sizes that differ", []*op.Call{
			{Head: op.Head{Record: op.Record{Kind: op.Send, Type: op.Int8, Root: 1, Count: 1}, SrcAt: 8}},
			{Head: op.Head{Record: op.Record{Kind: op.Recv, Type: op.Int8, Root: 1, Count: 2}, DstAt: 16}},
		}, errSelf.Error()},
		{"two receives", []*op.Call{
			{Head: op.Head{Record: op.Record{Kind: op.Recv, Type: op.Int8, Root: 1, Count: 1}, DstAt: 8}},
			{Head: op.Head{Record: op.Record{Kind: op.Recv, Type: op.Int8, Root: 1, Count: 1}, DstAt: 16}},
		}, errSelf.Error()},
		{"int16", []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int16, Count: 1}, DstAt: 8, SrcAt: 8}}}, "oneCCL does not reduce type 3 with operator 0"},
		{"no kind", []*op.Call{{Head: op.Head{Record: op.Record{Kind: 77}}}}, "oneCCL has no calls of kind 77"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := &plan{rank: 1, size: 3}
			require.EqualError(t, p.make(tc.calls), tc.want)
		})
	}
}

func TestPlanAllocates(t *testing.T) {
	p := &plan{rank: 1, size: 4}
	calls := []*op.Call{
		{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Count: 4}, DstAt: 8, SrcAt: 8}},
		{Head: op.Head{Record: op.Record{Kind: op.SendRecv, Type: op.Float32, Count: 4, Root: 0}, SrcN: 4, To: 2, DstAt: 8, SrcAt: 8}},
		{Head: op.Head{Record: op.Record{Kind: op.Gather, Type: op.Float32, Count: 4, Root: 1}, DstAt: 64, SrcAt: 64}},
	}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		require.NoError(t, p.make(calls))
	}))
}

// The layout is that of goneccl_step: four 32-bit numbers, then five of the machine's words.
func TestStepLayout(t *testing.T) {
	require.EqualValues(t, 16+5*unsafe.Sizeof(uintptr(0)), unsafe.Sizeof(step{}))
}
