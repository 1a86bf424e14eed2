package links

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// ranksOf are n ranks of this process, with pipes between them: what they run of schedules is the same over connections.
func ranksOf(t testing.TB, n int, opt plane.Options) []*Links {
	t.Helper()
	j := plane.EnterJob(t.Name(), opt.Agreed.PeerTimeout)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host = group.Topology(make([]int, n), 1), plane.PrivateHost()
	off, err := s.Here.Host.Alloc(region.Bytes(n))
	require.NoError(t, err)
	shared, err := s.Here.Host.View(off, region.Bytes(n))
	require.NoError(t, err)
	all := make([]*Links, n)
	for r := range all {
		all[r] = new(Links)
		m, mem := new(plane.Member), new(reach.Reach)
		m.Init(s, group.WorldID, group.Members{Stride: 1}, s.Job.World.Topo, r, region.New(off, shared, n), opt)
		mem.Init(m)
		all[r].Init(m, mem, new(call.Workspace))
		m.Enlist()
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(c.rank)
		}
		j.Leave()
	})
	return all
}

// lives moves the clock of j on until the test ends, as the monitor does.
func lives(t testing.TB, j *plane.Job) {
	ctx, stop := context.WithCancel(context.Background())
	var one sync.WaitGroup
	one.Go(func() {
		for ctx.Err() == nil {
			j.Time.Lived.Lap(time.Now())
			time.Sleep(5 * time.Millisecond)
		}
	})
	t.Cleanup(func() { stop(); one.Wait() })
}

// atOnce runs f as each rank, and waits for all of them.
func atOnce(t testing.TB, all []*Links, f func(c *Links) *call.Fault) {
	t.Helper()
	faults := make([]*call.Fault, len(all))
	var wg sync.WaitGroup
	for r, c := range all {
		wg.Go(func() { faults[r] = f(c) })
	}
	wg.Wait()
	for r, f := range faults {
		require.Nil(t, f, "rank %d: %v", r, f)
	}
}

// made runs f as Comm.Run does.
func made(c *Links, k *call.Call, f func(ctx context.Context, k *call.Call) *call.Fault) *call.Fault {
	k.Seal()
	if k.DC != nil && k.Kind != call.AllToAllV {
		k.Offsets = call.OffsetsOf(nil, k.DC, k.Elem)
	}
	c.rank.Current.Begin(k, c.rank.Site.Job.Clock(), false)
	if !k.Kind.Pairwise() {
		c.rank.Order.Enter(k)
	}
	fault := f(context.Background(), k)
	c.rank.EndCall()
	return fault
}

// vector has n elements of rank r for rank to, so small that no sum of a test overflows.
func vector(r, to, n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = int32(r*1_000_000 + to*10_000 + i%9973 + 1)
	}
	return v
}

// sumOf is what the vectors of n ranks for rank to are, added up.
func sumOf(n, to, count int) []int32 {
	sum := make([]int32, count)
	for r := range n {
		for i, x := range vector(r, to, count) {
			sum[i] += x
		}
	}
	return sum
}

// blocks are those of n ranks, one behind another.
func blocks(n int, of func(q int) []int32) (all []int32) {
	for q := range n {
		all = append(all, of(q)...)
	}
	return all
}

func bytesOf(v []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func int32sOf(b []byte) []int32 {
	return unsafe.Slice((*int32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// callOf is a call on elements of 4 bytes, with the sum.
func callOf(kind call.Kind, root, count int, dst, src []int32) *call.Call {
	return &call.Call{Head: op.Head{Record: call.Record{Kind: kind, Root: int32(root), Count: uint64(count)}}, Dst: bytesOf(dst), Src: bytesOf(src), Elem: 4, Fold: reduce.For(op.Int32, op.Sum)}
}

// same fails t where got is not want. Ranks are goroutines, which must not end there: the others would wait for them.
func same(t testing.TB, want, got []int32, format string, args ...any) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	where := fmt.Sprintf(format, args...)
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Errorf("%s: element %d of %d is %d, not %d", where, i, len(want), got[i], want[i])
			return
		}
	}
	t.Errorf("%s: %d elements, not %d", where, len(got), len(want))
}
