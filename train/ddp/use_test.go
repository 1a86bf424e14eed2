package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/mesh"
)

// Each step has other gradients, which lie side by side or not, on this rank or that: all are averaged, through every Hook.
func TestUse(t *testing.T) {
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "outer", Size: 2}, mesh.Dim{Name: "inner", Size: 2})
		require.NoError(t, err)
		defer m.Close()
		lens := []int{3, 100, 1, 40}
		for _, hook := range []ddp.Hook{nil, ddp.BFloat16, ddp.Hierarchical(m.Comm("inner"), m.Comm("outer"))} {
			make1 := func(joined bool) (all []ccl.Buf) {
				flat := ccl.BufOf(make([]float32, 144))
				at := 0
				for _, n := range lens {
					b := flat.From(at, at+n)
					if at += n; !joined {
						b = ccl.BufOf(make([]float32, n))
					}
					all = append(all, b)
				}
				return all
			}
			r := newReducer(t, c, make1(true), &ddp.Options{FirstBytes: 20, Bytes: 200, Hook: hook})
			for step := range 4 {
				grads := make1((c.Rank()+step)%2 == 0)
				for i, b := range grads {
					g, _ := ccl.SliceOf[float32](b)
					for k := range g {
						g[k] = float32(2*c.Rank()+1) * float32(i+step+k%3)
					}
				}
				require.NoError(t, r.Use(grads))
				require.NoError(t, r.All(t.Context()))
				for i, b := range grads {
					g, _ := ccl.SliceOf[float32](b)
					for k := range g {
						require.Equal(t, 4*float32(i+step+k%3), g[k], "step %d, gradient %d", step, i)
					}
				}
			}
			require.NoError(t, r.Close())
		}
	})
}

func TestUseRefuses(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		x, y := ccl.BufOf(make([]float32, 4)), ccl.BufOf(make([]float32, 2))
		r := newReducer(t, c, []ccl.Buf{x, y}, nil)
		for _, tc := range []struct {
			grads []ccl.Buf
			want  string
		}{
			{[]ccl.Buf{x}, "ddp: Use of 1 gradients; New had 2"},
			{[]ccl.Buf{y, x}, "ddp: Use: gradient 0 is 2 x float; New had 4 x float"},
			{[]ccl.Buf{x, ccl.BufOf(make([]float64, 2))}, "ddp: Use: gradient 1 is 2 x double; New had 2 x float"},
			{[]ccl.Buf{x, y.From(1, 3)}, "ddp: Use: gradient 1 is 0 x float; New had 2 x float"},
			{[]ccl.Buf{x, x.From(2, 4)}, "ddp: Use: gradients 0 and 1 overlap: give what is shared once"},
		} {
			require.EqualError(t, r.Use(tc.grads), tc.want)
		}
		require.NoError(t, r.Ready(1))
		require.EqualError(t, r.Use([]ccl.Buf{x, y}), "ddp: Use: gradient 1 is Ready and may be under way; Wait first")
		require.NoError(t, r.Ready(0))
		require.NoError(t, r.Wait(t.Context()))
		require.NoError(t, r.Use([]ccl.Buf{x, y}))
		require.NoError(t, r.Use([]ccl.Buf{x, y}))
		both := []ccl.Buf{x, y}
		var err error
		require.Zero(t, testing.AllocsPerRun(10, func() { err = r.Use(both) }))
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.EqualError(t, r.Use([]ccl.Buf{x, y}), "ddp: the Reducer is closed")
	})
}
