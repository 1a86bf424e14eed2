package outer_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/mirror"
	"github.com/goccl/goccl/train/outer"
	"github.com/goccl/goccl/train/quant"
	"github.com/goccl/goccl/train/zero"
)

// A rank is lost, at each call of the exchanges: its error passes through, the others shrink and go on with their inner steps
// kept, and have the same outer bits from then on.
func TestLostRank(t *testing.T) {
	for _, o := range []*outer.Options{{Every: 2}, {Every: 4, Fragments: 2, Delay: 3, Mix: .5, Codec: quant.Int8}, {Every: 3, Delay: 2, Eager: true, Codec: quant.Int4}} {
		for nth := 5; nth < 13; nth++ {
			t.Run(fmt.Sprint(*o, nth), func(t *testing.T) {
				ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
					m := newModel(c.Rank(), 700, 300)
					alone := ccltest.Split(t, c, c.Rank(), 0) // in which calls are counted without the others
					u, err := outer.New(m.units, o)
					require.NoError(t, err)
					err = u.On(t.Context(), c)
					step := 0
					for err == nil {
						require.NoError(t, ccl.Barrier(t.Context(), alone))
						step++
						m.step(step)
						_, err = u.Step(t.Context())
					}
					require.ErrorIs(t, err, ccl.ErrRankLost)
					require.ErrorContains(t, err, "outer: ")
					next, err := c.Shrink(t.Context())
					require.NoError(t, err)
					defer next.Close()
					before := slices.Clone(m.units[0])
					require.NoError(t, u.On(t.Context(), next))
					require.NoError(t, u.Same(t.Context()))
					if o.Delay > 0 && !o.Eager { // what has not ended elsewhere is not mixed here
						require.InDeltaSlice(t, before, m.units[0], 2)
					}
					for range 12 {
						step++
						m.step(step)
						advance(t, u)
					}
					_, err = u.Flush(t.Context())
					require.NoError(t, err)
					require.NoError(t, u.Same(t.Context()))
				}, ccltest.Kill(1, nth), ccltest.Hosts(2))
			})
		}
	}
}

// A rank is lost while the ranks average: what the others average then is their own differences, and not what the exchange
// has left of them. Either all have the mean of the two that are left, or that of three, which one had received.
func TestLostRankLeavesTheDifferences(t *testing.T) {
	for nth := 5; nth < 8; nth++ {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			x := make([]float32, 100_000)
			u, err := outer.New([][]float32{x}, &outer.Options{Every: 1, Mean: true})
			require.NoError(t, err)
			require.NoError(t, u.On(t.Context(), c))
			before := float32(0)
			for err == nil {
				before = u.Params()[0][0]
				for i := range x {
					x[i] = before + float32(int(1)<<(2*c.Rank())) // 1, 4 or 16 more
				}
				_, err = u.Step(t.Context())
			}
			require.ErrorIs(t, err, ccl.ErrRankLost)
			next, err := c.Shrink(t.Context())
			require.NoError(t, err)
			defer next.Close()
			require.NoError(t, u.On(t.Context(), next))
			require.Contains(t, []float32{before + 7, before + 8.5}, x[0])
			for i := range x {
				require.Equal(t, x[0], x[i], i)
			}
		}, ccltest.Kill(1, nth), ccltest.Hosts(3))
	}
}

// One rank has made the outer step of an exchange that the others lost: they get its state, and go on as if they had made it.
func TestOneRankIsAhead(t *testing.T) {
	for _, o := range []*outer.Options{{Every: 2, Mix: .25}, {Every: 2, Delay: 1, Mix: .25}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			d := ccltest.Split(t, c, 0, c.Rank())
			m, want := newModel(c.Rank(), 100), newModel(c.Rank(), 100)
			u, w := begun(t, d, m, o), begun(t, ccltest.Split(t, c, 0, c.Rank()), want, o)
			state := func(u *outer.Outer) (copies [][]float32) {
				for _, b := range u.State()[1:3] {
					x, _ := ccl.SliceOf[float32](b)
					copies = append(copies, slices.Clone(x))
				}
				return copies
			}
			before := state(u)
			for step := 1; step <= 2+o.Delay; step++ {
				m.step(step)
				want.step(step)
				_, err := w.Step(t.Context())
				require.NoError(t, err)
				if step < 2+o.Delay {
					advance(t, u)
				}
			}
			if c.Rank() != 1 { // these lose the exchange, as if rank 1 had been lost after it
				heads, _ := ccl.SliceOf[int64](u.State()[0])
				local := slices.Clone(m.units[0])
				advance(t, u)
				copy(m.units[0], local)
				for i, x := range before {
					b, _ := ccl.SliceOf[float32](u.State()[1+i])
					copy(b, x)
				}
				heads[3], heads[4], heads[5] = heads[1], 1, 0 // the exchange is due, is the first, and has moved nothing
			} else {
				advance(t, u)
			}
			require.NoError(t, u.On(t.Context(), c))
			require.NoError(t, u.Same(t.Context()))
			require.Equal(t, state(w), state(u))
			require.Equal(t, want.units, m.units)
		})
	}
}

// A newcomer gets the outer state, and begins from it; the others keep their inner steps.
func TestNewcomer(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m := newModel(c.Rank(), 400, 100)
		u, err := outer.New(m.units, &outer.Options{Every: 3, Delay: 1, Mix: .5, Codec: quant.BFloat16})
		require.NoError(t, err)
		part := ccltest.Split(t, c, min(c.Rank(), 1), c.Rank()) // rank 0 alone, and two
		_ = part
		if c.Rank() > 0 {
			require.NoError(t, u.On(t.Context(), part))
			for step := 1; step <= 7; step++ {
				m.step(step)
				advance(t, u)
			}
			_, err = u.Flush(t.Context())
			require.NoError(t, err)
		} else {
			m.step(5) // what a newcomer has is of no account
		}
		before := slices.Clone(m.units[1])
		require.NoError(t, u.On(t.Context(), c))
		require.Equal(t, 7, u.Steps())
		require.NoError(t, u.Same(t.Context()))
		if c.Rank() > 0 {
			require.Equal(t, before, m.units[1])
		} else {
			require.Equal(t, u.Params(), m.units)
		}
		for step := 8; step <= 12; step++ {
			m.step(step)
			advance(t, u)
		}
		_, err = u.Flush(t.Context())
		require.NoError(t, err)
		require.NoError(t, u.Same(t.Context()))
	})
}

// A mirror brings back a run to a step in which exchanges are under way, and it goes on with the bits that it would have had.
func TestMirrored(t *testing.T) {
	for _, o := range []*outer.Options{{Every: 3}, {Every: 6, Fragments: 2, Delay: 4, Mix: .5, Codec: quant.Int8}, {Every: 4, Delay: 3, Eager: true}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			const saved, last = 9, 16
			m := newModel(c.Rank(), 200, 90)
			u := begun(t, ccltest.Split(t, c, 0, c.Rank()), m, o)
			mir := mirror.New(nil)
			defer mir.Close()
			state := u.State()
			for _, x := range m.units {
				state = append(state, ccl.BufOf(x))
			}
			_, err := mir.Restore(t.Context(), c, nil, state...)
			require.NoError(t, err)
			run := func(from int) uint64 {
				for step := from; step <= last; step++ {
					m.step(step)
					advance(t, u)
					if from == 1 && step == saved {
						require.NoError(t, mir.Save(t.Context(), step, state...))
						require.NoError(t, mir.Wait(t.Context()))
					}
				}
				_, err := u.Flush(t.Context())
				require.NoError(t, err)
				return ddp.Hash(m.units...) ^ u.Hash()
			}
			want := run(1)
			next := ccltest.Split(t, c, 0, c.Rank())
			step, err := mir.Restore(t.Context(), next, nil, state...)
			require.NoError(t, err)
			require.Equal(t, saved, step)
			require.NoError(t, u.On(t.Context(), ccltest.Split(t, c, 0, c.Rank())))
			require.Equal(t, saved, u.Steps())
			require.Equal(t, want, run(saved+1))
		})
	}
}

// Over zero, the shards of a site are what is exchanged with the same ranks of other sites: as one rank a site would.
func TestOverZero(t *testing.T) {
	const sites, per = 2, 2
	lens := [][]int{{30, 11}, {25}}
	o := &outer.Options{Every: 2}
	train := func(t testing.TB, c *ccl.Comm, inside, across *ccl.Comm, site int) []float32 {
		z, err := zero.New[float32, float32](t.Context(), inside, lens, &zero.Options{Stage: 3})
		require.NoError(t, err)
		defer z.Close()
		var shards [][]float32
		for i, l := range lens {
			var full [][]float32
			for j, n := range l {
				full = append(full, newModel(i+j, n).units[0])
			}
			require.NoError(t, z.Load(t.Context(), i, full, 0))
			shards = append(shards, z.Shard(i))
		}
		u, err := outer.New(shards, o)
		require.NoError(t, err)
		require.NoError(t, u.On(t.Context(), across))
		for step := 1; step <= 6; step++ {
			for i := range lens {
				w, err := z.Params(t.Context(), i)
				require.NoError(t, err)
				g, err := z.Grads(t.Context(), i)
				require.NoError(t, err)
				for j := range g {
					for k := range g[j] { // of the site alone
						g[j][k] += (&model{rank: site}).grad(step, i, k+j, w[j][k])
					}
				}
				z.Release(i)
				require.NoError(t, z.Reduce(i))
			}
			require.NoError(t, z.Step(t.Context(), func(_ zero.Piece, w, g []float32) error {
				for k := range w {
					w[k] -= float32(.1 * g[k])
				}
				return nil
			}))
			moved, err := u.Step(t.Context())
			require.NoError(t, err)
			require.Equal(t, step%2 == 0, moved)
			if moved {
				require.NoError(t, z.Loaded(t.Context()))
			}
		}
		require.NoError(t, u.Same(t.Context()))
		var all []float32
		for i := range lens {
			w, err := z.Params(t.Context(), i)
			require.NoError(t, err)
			all = append(all, slices.Concat(w...)...)
			z.Release(i)
		}
		return all
	}
	var want []float32
	ccltest.Run(t, sites, func(t testing.TB, c *ccl.Comm) {
		w := train(t, c, ccltest.Split(t, c, c.Rank(), 0), ccltest.Split(t, c, 0, c.Rank()), c.Rank())
		if c.Rank() == 0 {
			want = w
		}
	})
	ccltest.Run(t, sites*per, func(t testing.TB, c *ccl.Comm) {
		m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "site", Size: sites}, mesh.Dim{Name: "dp"})
		require.NoError(t, err)
		defer m.Close()
		require.InDeltaSlice(t, want, train(t, c, m.Comm("dp"), m.Comm("site"), m.Coord("site")), 1e-6)
	})
}
