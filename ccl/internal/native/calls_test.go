//go:build (nccl || rccl) && cgo && linux

package native

import (
	"runtime"
	"runtime/pprof"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/op"
)

// TestGroupIsOneCall: eight calls cross from Go to C once, as one does, strict or not.
func TestGroupIsOneCall(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		r := world(t, v, 1)[0]
		m, err := gpu.Alloc[int32](r.device, 8)
		require.NoError(t, err)
		defer m.Free()
		at, _ := m.Ptr()
		var calls []*op.Call
		for i := range uintptr(8) {
			calls = append(calls, &op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 1}, DstAt: at + 4*i, SrcAt: at + 4*i}})
		}
		h := r.handle()
		require.NoError(t, r.Issue(h, calls)) // what is made on first use
		for _, n := range []int{1, 8} {
			before := runtime.NumCgoCall()
			require.NoError(t, r.Issue(h, calls[:n]))
			require.EqualValues(t, 1, runtime.NumCgoCall()-before, "%d calls", n)
		}
		require.NoError(t, r.wait(within(t)))
	})
}

// TestThreads: Go starts no thread for a communicator.
func TestThreads(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		started := pprof.Lookup("threadcreate")
		const n = 64
		var all [][]*rank
		made := func(k int) {
			for range k {
				all = append(all, world(t, v, 1))
			}
			for _, ranks := range all {
				m := ranks[0].memory(t)
				require.NoError(t, ranks[0].issueOne(m))
				require.NoError(t, ranks[0].wait(within(t)))
				require.NoError(t, m.Free())
			}
		}
		made(4)
		before := started.Count()
		made(n)
		require.Less(t, started.Count()-before, n/4)
	})
}
