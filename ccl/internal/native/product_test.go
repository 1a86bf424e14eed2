//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// What a program sees of this package: package ccl on device memory and streams of a device.

// long is how long anything in a test may take.
const long = time.Minute

// backends runs f with each of the two that this build has, and the runtime of its devices.
func backends(t *testing.T, f func(t *testing.T, name string, rt *gpu.Runtime)) {
	for name, rt := range map[string]*gpu.Runtime{"nccl": gpu.CUDA, "rccl": gpu.HIP} {
		if slices.Contains(ccl.Backends(), name) {
			t.Run(name, func(t *testing.T) { f(t, name, rt) })
		}
	}
}

// on is a rank's stream and device.
type on struct {
	t  testing.TB
	c  *ccl.Comm
	d  gpu.Device
	s  *gpu.Stream
	q  ccl.Queue
	me int
	n  int

	all *crowd // of a job of goroutines: see meet
}

// begin is a rank of c with a stream on its device.
func begin(t testing.TB, c *ccl.Comm, rt *gpu.Runtime) *on {
	p := c.Place()
	d, err := rt.Local(p.Local, p.Locals)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return &on{t: t, c: c, d: d, s: s, q: c.On(s), me: c.Rank(), n: c.Size()}
}

// mem is device memory that holds v, for as long as the rank's test runs.
func (r *on) mem(v ...int32) *gpu.Mem[int32] {
	m, err := gpu.Alloc[int32](r.d, len(v))
	require.NoError(r.t, err)
	require.NoError(r.t, m.Put(v))
	r.t.Cleanup(func() { m.Free() })
	return m
}

// sumOf sums x over all ranks, in its place.
func sumOf(q ccl.Queue, x *gpu.Mem[int32]) ccl.Work {
	return q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
}

// ends waits for w, and is what x holds then.
func (r *on) ends(w ccl.Work, x *gpu.Mem[int32]) []int32 {
	ctx, cancel := context.WithTimeout(r.t.Context(), long)
	defer cancel()
	require.NoError(r.t, w.Wait(ctx))
	return r.get(x)
}

// get is what x holds.
func (r *on) get(x *gpu.Mem[int32]) []int32 {
	got := make([]int32, x.Len())
	require.NoError(r.t, x.Get(got))
	return got
}

// jobs are where the ranks of a test live.
var jobs = []struct {
	name string
	opts []ccltest.Option
}{
	{"goroutines", nil},
	{"processes", []ccltest.Option{ccltest.Processes(3)}},
	{"both", []ccltest.Option{ccltest.Processes(2)}},
}

// TestProduct makes every collective on device memory, in each kind of job.
func TestProduct(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		for _, job := range jobs {
			for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict} {
				t.Run(fmt.Sprintf("%s/%v", job.name, check), func(t *testing.T) {
					ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
						r := begin(t, c, rt)
						r.collectives()
						r.group()
						r.graph()
						r.split(rt)
					}, append(job.opts, ccltest.With(ccl.Options{Backend: name, Check: check}))...)
				})
			}
		}
	})
}

func (r *on) collectives() {
	t, q, me, n := r.t, r.q, int32(r.me), r.n
	dev := ccl.BufOfMemory[int32]
	next, prev := (r.me+1)%n, (r.me+n-1)%n
	counts := []int{1, 0, 2}
	offset := []int32{0, 1, 1}[r.me]
	v := func(from int32, k int) (x []int32) {
		for i := range k {
			x = append(x, from+int32(i))
		}
		return x
	}
	x := r.mem(me+1, 10)
	require.Equal(t, []int32{6, 30}, r.ends(q.AllReduce(dev(x), ccl.InPlace(), ccl.Sum), x))
	y := r.mem(0, 0)
	x = r.mem(me+1, 10)
	require.Equal(t, []int32{3, 10}, r.ends(q.AllReduce(dev(y), dev(x), ccl.Max), y))
	got := r.ends(q.Reduce(dev(y), dev(x), ccl.Prod, 1), y)
	if me == 1 {
		require.Equal(t, []int32{6, 1000}, got)
	}
	b := r.mem(me*7, 5)
	require.Equal(t, []int32{14, 5}, r.ends(q.Broadcast(dev(b), 2), b))
	one, three := r.mem(0), r.mem(me, me+1, me+2)
	require.Equal(t, []int32{3 + 3*me}, r.ends(q.ReduceScatter(dev(one), dev(three), ccl.Sum), one))
	one = r.mem(me * me)
	require.Equal(t, []int32{0, 1, 4}, r.ends(q.AllGather(dev(three), dev(one)), three))
	got = r.ends(q.Gather(dev(three), dev(one), 0), three)
	require.Equal(t, []int32{0, 1, 4}, got)
	three = r.mem(v(100*me, 3)...)
	require.Equal(t, []int32{100 + me}, r.ends(q.Scatter(dev(one), dev(three), 1), one))
	out := r.mem(0, 0, 0)
	require.Equal(t, []int32{me, 100 + me, 200 + me}, r.ends(q.AllToAll(dev(out), dev(three)), out))
	require.Equal(t, []int32{me, 100 + me, 200 + me}, r.ends(q.AllToAll(dev(three), ccl.InPlace()), three))

	mine := r.mem(v(10*me, counts[me])...)
	require.Equal(t, []int32{0, 20, 21}, r.ends(q.AllGatherV(dev(out), counts, dev(mine)), out))
	got = r.ends(q.GatherV(dev(out), counts, dev(mine), 2), out)
	if me == 2 {
		require.Equal(t, []int32{0, 20, 21}, got)
	}
	src := r.mem(v(0, 3)...)
	require.Equal(t, v(offset, counts[me]), or(r.ends(q.ScatterV(dev(mine), dev(src), counts, 0), mine)))
	want := v(3*offset, counts[me])
	if len(want) == 2 {
		want[1] = want[0] + 3
	}
	require.Equal(t, want, or(r.ends(q.ReduceScatterV(dev(mine), dev(src), counts, ccl.Sum), mine)))
	sc, dc := []int{1, 1, 1}, []int{1, 1, 1}
	require.Equal(t, []int32{me, me, me}, r.ends(q.AllToAllV(dev(out), dc, dev(src), sc), out))

	s := r.mem(me, -me)
	require.Equal(t, []int32{int32(prev), -int32(prev)}, r.ends(q.SendRecv(dev(s), prev, dev(s), next), s))
	s = r.mem(me, -me)
	w := q.Group(func(g ccl.Queue) error {
		g.Send(dev(s), next)
		g.Recv(dev(y), prev)
		return nil
	})
	require.Equal(t, []int32{int32(prev), -int32(prev)}, r.ends(w, y))
	require.NoError(t, q.Barrier().Wait(t.Context()))
	require.Equal(t, []int32{7, 8}, r.hosted(7, 8), "calls on host memory go beside those of the device")
}

// or is x, nil for none.
func or(x []int32) []int32 {
	if len(x) == 0 {
		return nil
	}
	return x
}

// hosted is a call on host memory of the same Comm.
func (r *on) hosted(v ...int32) []int32 {
	require.NoError(r.t, ccl.Broadcast(r.t.Context(), r.c, v, 0))
	return v
}

// group makes calls as one.
func (r *on) group() {
	x := r.mem(make([]int32, 8)...)
	require.NoError(r.t, x.Put([]int32{1, 2, 3, 4, 5, 6, 7, 8}))
	var works []ccl.Work
	w := r.q.Group(func(g ccl.Queue) error {
		for i := range 8 {
			part := ccl.BufOfMemory(x).From(i, i+1)
			works = append(works, g.AllReduce(part, ccl.InPlace(), ccl.Sum))
		}
		return nil
	})
	n := int32(r.n)
	require.Equal(r.t, []int32{n, 2 * n, 3 * n, 4 * n, 5 * n, 6 * n, 7 * n, 8 * n}, r.ends(w, x))
	for _, w := range works {
		done, err := w.Test()
		require.NoError(r.t, err)
		require.True(r.t, done)
	}
}

// graph captures calls, and launches them again and again.
func (r *on) graph() {
	if r.c.Size() == 1 {
		return
	}
	x := r.mem(1)
	// The library's connections are made by a call outside the capture.
	require.Equal(r.t, []int32{int32(r.n)}, r.ends(sumOf(r.q, x), x))
	require.NoError(r.t, x.Put([]int32{1}))
	require.NoError(r.t, ccl.Barrier(r.t.Context(), r.c))
	require.NoError(r.t, r.s.BeginCapture())
	w := sumOf(r.q, x)
	var e *ccl.Error
	require.ErrorAs(r.t, w.Wait(r.t.Context()), &e, "a call that is captured does not run")
	require.Equal(r.t, ccl.ErrArgument, e.Code, "%v", e)
	g, err := r.s.EndCapture()
	require.NoError(r.t, err)
	defer g.Close()
	for range 3 {
		require.NoError(r.t, g.Launch(r.s))
	}
	require.NoError(r.t, r.s.Synchronize())
	require.Equal(r.t, []int32{int32(r.n * r.n * r.n)}, r.get(x))
}

// split makes a Comm of two of the three ranks.
func (r *on) split(rt *gpu.Runtime) {
	color := 0
	if r.me == 1 {
		color = -1
	}
	child, err := r.c.Split(r.t.Context(), color, 0)
	require.NoError(r.t, err)
	if child == nil {
		return
	}
	x := r.mem(int32(r.me))
	w := sumOf(child.On(r.s), x)
	require.Equal(r.t, []int32{2}, r.ends(w, x))
	require.NoError(r.t, child.Close())
}

// TestProductSplitOfAnyInts: colors and keys that differ beyond 32 bits alone make the same Comms in the library as in its
// control plane, in the same order.
func TestProductSplitOfAnyInts(t *testing.T) {
	const high = 1 << 32
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		ccltest.Run(t, 5, func(t testing.TB, c *ccl.Comm) {
			r := begin(t, c, rt)
			color := []int{1, high + 1, 1, high + 1, -high}[r.me]
			key := []int{high, 2 * high, 1, 5, 0}[r.me] // cut to 32 bits: 0, 0, 1, 5
			child, err := c.Split(t.Context(), color, key)
			require.NoError(t, err)
			if child == nil {
				require.Equal(t, 4, r.me)
				return
			}
			x, all := r.mem(int32(r.me)), r.mem(-1, -1)
			w := child.On(r.s).AllGather(ccl.BufOfMemory(all), ccl.BufOfMemory(x))
			require.Equal(t, [][]int32{{2, 0}, {3, 1}}[r.me%2], r.ends(w, all))
			require.NoError(t, child.Close())
		}, ccltest.With(ccl.Options{Backend: name}))
	})
}
