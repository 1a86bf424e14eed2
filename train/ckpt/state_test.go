package ckpt

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// What a rank keeps for itself it gets back, as many ranks go on; other numbers of ranks, and ranks that had nothing, keep
// what they have. It is no tensor, and is not exported.
func TestStateOfEachRank(t *testing.T) {
	dir, first, later := t.TempDir(), make([]uint64, 3), make([]uint64, 3)
	for step, saver := range []bool{false, true} {
		name := Step(dir, step)
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			rng := rand.NewPCG(1, uint64(c.Rank()))
			first[c.Rank()] = rng.Uint64()
			text, err := rng.MarshalBinary()
			require.NoError(t, err)
			state := State{Job: map[string]int{"step": step}, Rank: text}
			if c.Rank() == 1 {
				state.Rank = nil
			}
			if !saver {
				require.NoError(t, Save(ctx, c, name, state, held(c.Rank(), 3, true)))
			} else {
				s, err := NewSaver(ctx, c)
				require.NoError(t, err)
				require.NoError(t, s.Save(ctx, name, &state, held(c.Rank(), 3, true)))
				for i := range text {
					text[i] = 0 // what is saved was copied
				}
				require.NoError(t, s.Close(ctx))
			}
			later[c.Rank()] = rng.Uint64()
		})
		for n := 1; n <= 4; n++ {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				job, own, ts := map[string]int{}, []byte("mine"), held(c.Rank(), n, false)
				require.NoError(t, Load(t.Context(), c, name, State{Job: &job, Rank: &own}, ts))
				require.Equal(t, held(c.Rank(), n, true), ts)
				require.Equal(t, map[string]int{"step": step}, job)
				if n != 3 || c.Rank() == 1 {
					require.Equal(t, "mine", string(own))
				} else {
					rng := &rand.PCG{}
					require.NoError(t, rng.UnmarshalBinary(own))
					require.Equal(t, later[c.Rank()], rng.Uint64())
				}
				job = nil
				require.NoError(t, Load(t.Context(), c, name, &job, ts), "the job's alone")
				require.Equal(t, map[string]int{"step": step}, job)
				require.NoError(t, Load(t.Context(), c, name, &State{}, ts))
			})
		}
		require.NotEqual(t, first, later)
		in, err := Verify(name)
		require.NoError(t, err)
		require.Len(t, in.Tensors, 3)
		require.NoError(t, Export(name, filepath.Join(dir, "hf"+name[len(name)-1:]), 0, nil))
		hf, err := Inspect(filepath.Join(dir, "hf"+name[len(name)-1:]))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint(in.Tensors), fmt.Sprint(hf.Tensors))
		_, parts, _, err := foreignFile(folder(name), partName(0, 3), modelIndexName)
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(parts, func(p piece) bool { return p.Name == stateName }), "any reader of safetensors opens the file")
	}
	// Damage to what one rank has for itself is an error on all.
	name := Step(dir, 0)
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		if c.Rank() == 0 {
			require.NoError(t, flip(filepath.Join(name, partName(2, 3)), -3))
		}
		ccltest.Barrier(t, c)
		var own []byte
		err := Load(t.Context(), c, name, State{Rank: &own}, nil)
		require.ErrorContains(t, err, "rank 2: the state of the rank: ")
		require.ErrorContains(t, err, "is damaged between bytes")
		require.ErrorContains(t, Save(t.Context(), c, Step(dir, 9), State{Rank: func() {}}, nil), "the state of the rank: json")
	})
}
