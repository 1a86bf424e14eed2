package ckpt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A part of a checkpoint is loaded by other names, and all ranks get one report of what did not match.
func TestPartial(t *testing.T) {
	dir := Step(t.TempDir(), 1)
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		require.NoError(t, Save(t.Context(), c, dir, 7, held(c.Rank(), 3, true)))
	})
	for n := 1; n <= 4; n++ {
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			full := held(c.Rank(), n, true)
			ts := held(c.Rank(), n, false)
			for i := range ts {
				ts[i].Name = "model." + ts[i].Name
			}
			o := LoadOptions{Rename: func(name string) string { return strings.TrimPrefix(name, "model.") }}
			r, err := LoadWith(ctx, c, dir, nil, ts, o)
			require.NoError(t, err)
			require.Equal(t, &Report{}, r)
			for i := range ts {
				require.Equal(t, full[i].Data, ts[i].Data)
			}

			// Each rank misses one of its own and one that all do; "v" rank 0 alone wants, "s" nobody, "m" all.
			ts = held(c.Rank(), n, false)
			head, own := []float32{5}, []int64{6}
			some := []Tensor{ts[0], {Name: "model.head", Shape: []int{1}, Data: head}, {Name: fmt.Sprint("model.own", c.Rank()), Data: own}}
			some[0].Name = "model.m"
			if c.Rank() == 0 {
				v := Tensor{Name: "v", Shape: shape, Data: make([]float64, 70)}
				some = append(some, v)
				defer func() { require.Equal(t, 69., v.Data.([]float64)[69]) }()
			}
			step := 0
			_, err = LoadWith(ctx, c, dir, &step, some, o)
			require.ErrorContains(t, err, "has no tensor \"head\"")
			o.Partial = true
			r, err = LoadWith(ctx, c, dir, &step, some, o)
			require.NoError(t, err)
			want := &Report{Missing: []string{"model.head"}, Unused: []string{"s"}}
			for k := range n {
				want.Missing = append(want.Missing, fmt.Sprint("model.own", k))
			}
			require.Equal(t, want, r)
			require.Equal(t, full[0].Data, ts[0].Data)
			require.Equal(t, 7, step)
			require.Equal(t, []float32{5}, head)
			require.Equal(t, []int64{6}, own)

			// What is there in another shape is an error, Partial or not.
			_, err = LoadWith(ctx, c, dir, nil, []Tensor{{Name: "s", Shape: []int{2}, Data: make([]int64, 2)}}, o)
			require.ErrorContains(t, err, `tensor "s" is I64 [] in`)
			if n > 1 {
				o.Convert = c.Rank() == 1
				_, err = LoadWith(ctx, c, dir, nil, nil, o)
				require.ErrorContains(t, err, "Convert")
			}
		})
	}
}
