//go:build (nccl || rccl) && cgo && linux

package onegpu

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// values makes every collective with few elements and with many, and compares each element.
func (r *rank) values(ctx context.Context) (string, error) {
	calls := 0
	for _, n := range []int{1, 1000, 1 << 18} {
		for _, tc := range collectives {
			if err := r.collective(ctx, n, tc); err != nil {
				return "", fmt.Errorf("%s of %d: %w", tc.name, n, err)
			}
			calls++
		}
	}
	return fmt.Sprintf("right, %d calls", calls), r.leave()
}

// at is element i of what a rank has.
func at(rank, i int) int32 { return int32(1000*rank + i%997) }

// a collective is a call and what it leaves: of n elements for each rank, the ones it gives are at(me, i).
type collective struct {
	name     string
	src, dst int // elements, as multiples of n
	call     func(r *rank, dst, src ccl.Buf, n int) ccl.Work
	want     func(me, i, n int) int32 // element i of dst
	only     int                      // the rank that gets something, -1: both
}

// part is element i of a block of n for each rank.
func part(i, n int) int32 { return at(i/n, i%n) }

var collectives = []collective{
	{"AllReduce", 1, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.AllReduce(dst, src, ccl.Sum) },
		func(_, i, _ int) int32 { return at(0, i) + at(1, i) }, -1},
	{"AllReduce max", 1, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.AllReduce(dst, src, ccl.Max) },
		func(_, i, _ int) int32 { return at(1, i) }, -1},
	{"Reduce", 1, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.Reduce(dst, src, ccl.Min, 1) },
		func(_, i, _ int) int32 { return at(0, i) }, 1},
	{"Broadcast", 1, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work {
		buf := dst
		if r.me == 1 {
			buf = src
		}
		return r.q.Broadcast(buf, 1)
	}, func(_, i, _ int) int32 { return at(1, i) }, 0},
	{"AllGather", 1, 2, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.AllGather(dst, src) },
		func(_, i, n int) int32 { return part(i, n) }, -1},
	{"ReduceScatter", 2, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.ReduceScatter(dst, src, ccl.Sum) },
		func(me, i, n int) int32 { return at(0, me*n+i) + at(1, me*n+i) }, -1},
	{"Gather", 1, 2, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.Gather(dst, src, 0) },
		func(_, i, n int) int32 { return part(i, n) }, 0},
	{"Scatter", 2, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.Scatter(dst, src, 1) },
		func(me, i, n int) int32 { return at(1, me*n+i) }, -1},
	{"AllToAll", 2, 2, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.AllToAll(dst, src) },
		func(me, i, n int) int32 { return at(i/n, me*n+i%n) }, -1},
	// Rank 0 has n elements, rank 1 two of n.
	{"AllGatherV", 2, 3, func(r *rank, dst, src ccl.Buf, n int) ccl.Work {
		return r.q.AllGatherV(dst, []int{n, 2 * n}, src.From(0, (r.me+1)*n))
	}, uneven, -1},
	{"GatherV", 2, 3, func(r *rank, dst, src ccl.Buf, n int) ccl.Work {
		return r.q.GatherV(dst, []int{n, 2 * n}, src.From(0, (r.me+1)*n), 1)
	}, uneven, 1},
	{"ScatterV", 3, 2, func(r *rank, dst, src ccl.Buf, n int) ccl.Work {
		return r.q.ScatterV(dst.From(0, (r.me+1)*n), src, []int{n, 2 * n}, 0)
	}, func(me, i, n int) int32 { return first(me, i, n, at(0, me*n+i)) }, -1},
	{"ReduceScatterV", 3, 2, func(r *rank, dst, src ccl.Buf, n int) ccl.Work {
		return r.q.ReduceScatterV(dst.From(0, (r.me+1)*n), src, []int{n, 2 * n}, ccl.Sum)
	}, func(me, i, n int) int32 { return first(me, i, n, at(0, me*n+i)+at(1, me*n+i)) }, -1},
	// Each keeps n, rank 0 gives rank 1 two of n, and gets nothing.
	{"AllToAllV", 3, 3, func(r *rank, dst, src ccl.Buf, n int) ccl.Work {
		if r.me == 0 {
			return r.q.AllToAllV(dst.From(0, n), []int{n, 0}, src, []int{n, 2 * n})
		}
		return r.q.AllToAllV(dst, []int{2 * n, n}, src.From(0, n), []int{0, n})
	}, func(me, i, n int) int32 {
		switch {
		case me == 0:
			return first(0, i, n, at(0, i))
		case i < 2*n:
			return at(0, n+i)
		}
		return at(1, i-2*n)
	}, -1},
	{"SendRecv", 1, 1, func(r *rank, dst, src ccl.Buf, _ int) ccl.Work { return r.q.SendRecv(dst, 1-r.me, src, 1-r.me) },
		func(me, i, _ int) int32 { return at(1-me, i) }, -1},
	{"Group", 1, 2, func(r *rank, dst, src ccl.Buf, n int) ccl.Work {
		return r.q.Group(func(g ccl.Queue) error {
			g.Send(src, 1-r.me)
			g.Recv(dst.From(0, n), 1-r.me)
			g.AllReduce(dst.From(n, 2*n), src, ccl.Sum)
			return nil
		})
	}, func(me, i, n int) int32 {
		if i < n {
			return at(1-me, i)
		}
		return at(0, i-n) + at(1, i-n)
	}, -1},
}

// untouched is what dst holds before the call.
const untouched = -7

func uneven(_, i, n int) int32 {
	if i < n {
		return at(0, i)
	}
	return at(1, i-n)
}

// first is v where i is one of the (me+1)n elements that a rank gets.
func first(me, i, n int, v int32) int32 {
	if i < (me+1)*n {
		return v
	}
	return untouched
}

func (r *rank) collective(ctx context.Context, n int, tc collective) error {
	from, to, want := make([]int32, tc.src*n), make([]int32, tc.dst*n), make([]int32, tc.dst*n)
	for i := range from {
		from[i] = at(r.me, i)
	}
	for i := range to {
		to[i], want[i] = untouched, untouched
		if tc.only < 0 || tc.only == r.me {
			want[i] = tc.want(r.me, i, n)
		}
	}
	src, err := r.mem(from...)
	if err != nil {
		return err
	}
	dst, err := r.mem(to...)
	if err != nil {
		return err
	}
	w := tc.call(r, ccl.BufOfMemory[int32](dst), ccl.BufOfMemory[int32](src), n)
	if tc.only >= 0 && tc.only != r.me {
		want = nil // what the others' dst holds is not promised
	}
	if err := r.expect(ctx, w, dst, want...); err != nil {
		return err
	}
	return unchanged(src, from)
}

// unchanged compares what was given, and frees it.
func unchanged(src *gpu.Mem[int32], from []int32) error {
	got := make([]int32, len(from))
	if err := src.Get(got); err != nil {
		return err
	}
	for i := range got {
		if got[i] != from[i] {
			return fmt.Errorf("element %d of what was given is %d, and was %d", i, got[i], from[i])
		}
	}
	return src.Free()
}
