package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/mesh"
)

// hooked averages gradients of lengths that divide by nothing through a Hook, and returns the Reducer's error, or nil if
// they are what they should be: want of the average of 2(rank+1).
func hooked(t testing.TB, c *ccl.Comm, hook ddp.Hook, sum bool, want func(float32) float32) error {
	gs, bufs := gradients(false, 1, 1000, 3, 70_001, 5)
	r := newReducer(t, c, bufs, &ddp.Options{FirstBytes: 1, Bytes: 1 << 13, Sum: sum, Hook: hook})
	defer r.Close()
	for step := range 3 {
		for i, g := range gs {
			for k := range g {
				g[k] = float32(c.Rank()+1) * float32(2+k%5+i+step)
			}
		}
		if err := r.All(t.Context()); err != nil {
			return err
		}
		scale := float32(c.Size()+1) / 2
		if sum {
			scale *= float32(c.Size())
		}
		for i, g := range gs {
			for k := range g {
				if x := want(scale * float32(2+k%5+i+step)); g[k] != x {
					t.Fatalf("step %d, gradient %d: element %d of %d is %v, not %v", step, i, k, len(g), g[k], x)
				}
			}
		}
		require.EqualValues(t, 4*71_010, r.Stats().Bytes)
	}
	return nil
}

func TestHooks(t *testing.T) {
	for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "processes": {ccltest.Processes(2)}, "hosts": {ccltest.Hosts(2)}} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "outer", Size: 2}, mesh.Dim{Name: "inner", Size: 2})
				require.NoError(t, err)
				defer m.Close()
				exact := func(x float32) float32 { return x } // the sums are small numbers
				for _, sum := range []bool{false, true} {
					require.NoError(t, hooked(t, c, nil, sum, exact))
					require.NoError(t, hooked(t, c, ddp.BFloat16, sum, exact))
					require.NoError(t, hooked(t, c, ddp.Hierarchical(m.Comm("inner"), m.Comm("outer")), sum, exact))
				}
			}, opts...)
		})
	}
}

// What a Hook cannot do is an error on all ranks, and the Comm goes on.
func TestHookRefuses(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		r := newReducer(t, c, []ccl.Buf{ccl.BufOf(make([]float64, 3))}, &ddp.Options{Hook: ddp.BFloat16})
		defer r.Close()
		require.ErrorContains(t, r.All(t.Context()), "ddp.BFloat16 is for float32 in host memory, not for double")
		require.ErrorContains(t, hooked(t, c, ddp.Hierarchical(c, c), false, nil), "ddp.Hierarchical: 2 by 2 ranks are not the 2 ranks of the Reducer")
		ccltest.Barrier(t, c)
	})
}

// BFloat16 sends half the bytes, rounded.
func TestBFloat16Rounds(t *testing.T) {
	var bytes = make(chan int, 1000)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		g := []float32{1 + 1.0/(1<<10), 3}
		r := newReducer(t, c, []ccl.Buf{ccl.BufOf(g)}, &ddp.Options{Hook: ddp.BFloat16})
		defer r.Close()
		require.NoError(t, r.All(t.Context()))
		require.Equal(t, []float32{1, 3}, g)
	}, ccltest.With(ccl.Options{OnCall: func(o ccl.Observation) {
		if o.Call.Type == ccl.TypeBFloat16 {
			bytes <- o.Bytes
		}
	}}))
	require.Len(t, bytes, 2)
	require.Equal(t, 4, <-bytes)
}
