// Package ranktest has ranks of one process, for the tests of the packages that a Comm is made of.
package ranktest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Of makes n ranks of this process on host: of each the member, and with init what is built on
// that. They leave when the test ends.
func Of[C any](t testing.TB, n int, host *shm.Host, opt plane.Options, init func(m *plane.Member) C) []C {
	t.Helper()
	j := plane.EnterJob(t.Name(), opt.Agreed.PeerTimeout)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host = group.Topology(make([]int, n), 1), host
	off, err := host.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := host.View(off, region.Bytes(n))
	require.NoError(t, err)
	all, members := make([]C, n), make([]plane.Member, n)
	for r := range all {
		m := &members[r]
		m.Init(s, group.WorldID, group.Members{Stride: 1}, s.Job.World.Topo, r, region.New(off, mem, n), opt)
		all[r] = init(m)
		m.Enlist()
	}
	t.Cleanup(func() {
		for r := range members {
			j.Remove(&members[r])
		}
		s.Here.Host = plane.PrivateHost()
		j.Leave()
	})
	return all
}

// AtOnce runs f as each rank, waits for all of them, and fails t where one has failed.
func AtOnce[C any](t testing.TB, all []C, f func(c C) *call.Fault) {
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

// Value is element i of what rank r has for rank to, so small that no sum of a test overflows.
func Value(r, to, i int) int32 { return int32(r*1_000_000 + to*10_000 + i%9973 + 1) }

// Vector has n elements of rank r for rank to.
func Vector(r, to, n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = Value(r, to, i)
	}
	return v
}

// Sum is what the vectors of n ranks for rank to are, added up.
func Sum(n, to, count int) []int32 {
	v := make([]int32, count)
	for r := range n {
		for i := range v {
			v[i] += Value(r, to, i)
		}
	}
	return v
}

// Bytes is the memory of v.
func Bytes(v []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// Call is one on elements of 4 bytes, with the sum.
func Call(kind call.Kind, root, count int, dst, src []int32) *call.Call {
	return &call.Call{Head: op.Head{Record: call.Record{Kind: kind, Root: int32(root), Count: uint64(count)}},
		Dst: Bytes(dst), Src: Bytes(src),
		Elem: 4, Fold: reduce.For(op.Int32, op.Sum), Stream: reduce.ForStream(op.Int32, op.Sum),
		Both: reduce.ForBoth(op.Int32, op.Sum)}
}

// Same fails t where got is not want. Ranks are goroutines, which must not end there: the others would wait for them.
func Same(t testing.TB, want, got []int32, format string, args ...any) {
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
