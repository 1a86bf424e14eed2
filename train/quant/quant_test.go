package quant_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/quant"
)

// normal is a vector of a rank: normal numbers.
func normal(rank, n int) []float32 {
	r, x := rand.New(rand.NewPCG(uint64(rank), 7)), make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// mean is that of the vectors of n ranks, in float64.
func mean(ranks, n int) []float64 {
	sum := make([]float64, n)
	for r := range ranks {
		for i, v := range normal(r, n) {
			sum[i] += float64(v) / float64(ranks)
		}
	}
	return sum
}

// off is the root of the mean square of the error, of that of what is right.
func off(got []float32, want []float64) float64 {
	var e, s float64
	for i, w := range want {
		d := float64(got[i]) - w
		e, s = e+d*d, s+w*w
	}
	return math.Sqrt(e / s)
}

// The mean of any number of ranks is off by two roundings, whatever the pieces are, and has the same bits on all ranks.
func TestAvg(t *testing.T) {
	most := []float64{quant.None: 1e-6, quant.BFloat16: .004, quant.Int8: .012, quant.Int4: .17, quant.E4M3: .04, quant.E5M2: .08}
	for _, tc := range []struct {
		ranks, hosts, n int
		pieces          []int // bytes
	}{
		{2, 1, 10_000, []int{0, 4096, 20_000}}, {3, 2, 10_001, []int{0, 9000}}, {4, 4, 33_333, []int{0, 50_000}}, {5, 1, 77, []int{0, 1}},
		{7, 2, 20_000, []int{16_000}}, {16, 2, 70_000, []int{0, 100_000}}, {1, 1, 1000, []int{0}},
	} {
		t.Run(fmt.Sprint(tc.ranks, "_ranks"), func(t *testing.T) {
			want := mean(tc.ranks, tc.n)
			ccltest.Run(t, tc.ranks, func(t testing.TB, c *ccl.Comm) {
				for k, most := range most {
					k := quant.Codec(k)
					for _, piece := range tc.pieces {
						for _, feedback := range []bool{false, true} {
							r, err := quant.New(c, k, tc.n, &quant.Options{Piece: piece, Feedback: feedback})
							require.NoError(t, err)
							for range 2 { // memory is used again
								x := normal(c.Rank(), tc.n)
								require.NoError(t, r.Avg(t.Context(), x))
								require.NoError(t, ddp.Same(t.Context(), c, ddp.Hash(x)))
								if !feedback && tc.n > 1000 {
									require.Less(t, off(x, want), most, "%v, pieces of %d", k, piece)
								}
								require.True(t, r.Finite())
							}
						}
					}
				}
			}, ccltest.Hosts(tc.hosts))
		})
	}
}

// A sum of integers that need no rounding is exact, and what a rank sends is what Bytes says.
func TestSum(t *testing.T) {
	const ranks, n = 4, 5000
	ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
		for _, tc := range []struct {
			k     quant.Codec
			most  int // a scale of 1 in each block, and in that of the sums
			bytes int64
		}{{quant.BFloat16, 31, 2 * 3 * 2 * n / ranks}, {quant.Int8, 127, 2 * 3 * 5 * 260}, {quant.Int4, 7, 2 * 3 * 20 * 36}, {quant.E4M3, 448, 2 * 3 * 5 * 260}, {quant.E5M2, 57344, 2 * 3 * 5 * 260}, {quant.None, 127, 2 * 3 * 4 * n / ranks}} {
			r, err := quant.New(c, tc.k, n, &quant.Options{Sum: true})
			require.NoError(t, err)
			x, want := make([]float32, n), make([]float32, n)
			for i := range x {
				if i%16 == 0 {
					x[i], want[i] = float32(tc.most), float32(ranks*tc.most)
				}
			}
			require.NoError(t, r.Avg(t.Context(), x))
			require.Equal(t, want, x, "%v", tc.k)
			require.Equal(t, tc.bytes, r.Bytes(), "%v", tc.k)
		}
	})
}

// A number that is not finite is told on all ranks, in whichever shard and on whichever rank it is, and the next call is as if
// it had not been.
func TestNotFinite(t *testing.T) {
	const ranks, n = 3, 3000
	ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
		for k := quant.None; k <= quant.E5M2; k++ {
			for i, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
				at := []int{0, 1200, n - 1}[i]
				for _, o := range []*quant.Options{{Feedback: true}, {Piece: 3000}} {
					r, err := quant.New(c, k, n, o)
					require.NoError(t, err)
					x := normal(c.Rank(), n)
					if c.Rank() == at%ranks {
						x[at] = float32(bad)
					}
					require.ErrorIs(t, r.Avg(t.Context(), x), quant.ErrNotFinite)
					require.False(t, r.Finite())
					require.True(t, x[at]-x[at] != 0, "element %d is %v", at, x[at])
					x = normal(c.Rank(), n)
					require.NoError(t, r.Avg(t.Context(), x))
					require.Less(t, off(x, mean(ranks, n)), .2)
				}
			}
		}
	})
}

// With Feedback the mean of many calls comes as near to that of the vectors as a call's error, divided by their number; without
// it stays off. Elements that are small beside the largest of their block are where that shows.
func TestFeedback(t *testing.T) {
	const ranks, n, calls = 3, 4000, 50
	ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
		var errs [2]float64
		for i, feedback := range []bool{false, true} {
			r, err := quant.New(c, quant.Int4, n, &quant.Options{Feedback: feedback, Piece: 5000})
			require.NoError(t, err)
			sum := make([]float32, n)
			for range calls {
				x := normal(c.Rank(), n)
				require.NoError(t, r.Avg(t.Context(), x))
				for i, v := range x {
					sum[i] += v / calls
				}
			}
			errs[i] = off(sum, mean(ranks, n))
		}
		require.Greater(t, errs[0], .1)
		require.Less(t, errs[1], .2/calls*3)
	})
}

func TestNothingIsAllocated(t *testing.T) {
	const n = 20_000
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		for k := quant.None; k <= quant.E5M2; k++ {
			r, err := quant.New(c, k, n, &quant.Options{Piece: 20_000, Feedback: k == quant.Int4})
			require.NoError(t, err)
			x := normal(c.Rank(), n)
			require.Zero(t, ccltest.Allocs(t, c, 10, func() { require.NoError(t, r.Avg(t.Context(), x)) }), "%v", k)
		}
	}, ccltest.Hosts(2), ccltest.Processes(4))
}

// A rank that is lost while others wait for its part is the error of all others, which go on without it.
func TestLostRank(t *testing.T) {
	const n = 50_000
	for _, processes := range []int{1, 3} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			alone := ccltest.Split(t, c, c.Rank(), 0) // in which calls are counted that the others do not take part in
			r, err := quant.New(c, quant.Int8, n, &quant.Options{Piece: 40_000})
			require.NoError(t, err)
			for err == nil {
				require.NoError(t, ccl.Barrier(t.Context(), alone))
				err = r.Avg(t.Context(), make([]float32, n))
			}
			require.ErrorIs(t, err, ccl.ErrRankLost)
			next, err := c.Shrink(t.Context())
			require.NoError(t, err)
			defer next.Close()
			r, err = quant.New(next, quant.Int8, n, nil)
			require.NoError(t, err)
			x := normal(next.Rank(), n)
			require.NoError(t, r.Avg(t.Context(), x))
			require.Less(t, off(x, mean(2, n)), .012)
		}, ccltest.Processes(processes), ccltest.Kill(1, 4))
	}
}

// The end of the context fails the Comm, and the vector is the caller's again.
func TestCanceled(t *testing.T) {
	for k := quant.None; k <= quant.E5M2; k++ {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			r, err := quant.New(c, k, 5000, nil)
			require.NoError(t, err)
			x := normal(c.Rank(), 5000)
			if c.Rank() == 0 {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				err = r.Avg(ctx, x)
				clear(x)
			} else {
				<-c.Done()
				err = r.Avg(t.Context(), x)
			}
			require.ErrorIs(t, err, ccl.ErrAborted)
			require.ErrorContains(t, err, "context canceled")
		})
	}
}

// The largest float32 may become an infinity, which is told as well.
func TestLargest(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		for k := quant.None; k <= quant.E5M2; k++ {
			r, err := quant.New(c, k, 700, &quant.Options{Sum: true})
			require.NoError(t, err)
			x := make([]float32, 700)
			if c.Rank() == 1 {
				x[600] = math.MaxFloat32
			}
			err = r.Avg(t.Context(), x)
			require.Equal(t, math.IsInf(float64(x[600]), 0) || math.IsNaN(float64(x[600])), err != nil, "%v: %v", k, x[600])
		}
	})
}

func TestMisuse(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		_, err := quant.New(nil, quant.Int8, 1, nil)
		require.EqualError(t, err, "quant: the Comm is nil")
		_, err = quant.New(c, 9, 1, nil)
		require.EqualError(t, err, "quant: Codec(9) is no codec")
		_, err = quant.New(c, quant.Int8, -1, nil)
		require.EqualError(t, err, "quant: -1 elements in pieces of 0 bytes: neither may be negative")
		r, err := quant.New(c, quant.Int8, 10, nil)
		require.NoError(t, err)
		require.ErrorContains(t, r.Avg(t.Context(), make([]float32, 9)), "quant: a vector of 9 elements; New had 10")
		require.NoError(t, r.Avg(t.Context(), make([]float32, 10)))
		empty, err := quant.New(c, quant.Int4, 0, nil)
		require.NoError(t, err)
		require.NoError(t, empty.Avg(t.Context(), nil))
		require.Zero(t, empty.Bytes())
		closed := ccltest.Split(t, c, 0, 0)
		closed.Abort(errors.New("a test"))
		r, err = quant.New(closed, quant.Int8, 10, nil)
		require.NoError(t, err)
		require.ErrorIs(t, r.Avg(context.Background(), make([]float32, 10)), ccl.ErrAborted)
	})
	for k := quant.None; k <= quant.E5M2; k++ {
		got, err := quant.Parse(k.String())
		require.NoError(t, err)
		require.Equal(t, k, got)
	}
	_, err := quant.Parse("int3")
	require.EqualError(t, err, `quant: "int3" is no codec; there are none, bf16, int8, int4, e4m3, e5m2`)
}

// Ranks whose Reducers differ in anything hear so, with what it is: none gets a mean of other numbers than it thinks.
func TestRanksDiffer(t *testing.T) {
	const n = 700
	for _, tc := range []struct {
		k    quant.Codec
		n    int
		o    quant.Options
		want string
	}{
		{quant.Int8, n, quant.Options{Sum: true}, "rank 0 has Sum false, rank 2 has Sum true"},
		{quant.None, n, quant.Options{}, "rank 0 has the codec int8, rank 2 has the codec none"},
		{quant.Int4, n, quant.Options{}, "rank 0 has the codec int8, rank 2 has the codec int4"},
		{quant.Int8, n + 1, quant.Options{}, "rank 0 has 700 elements, rank 2 has 701 elements"},
		{quant.Int8, 0, quant.Options{}, "rank 0 has 700 elements, rank 2 has 0 elements"},
		{quant.Int8, n, quant.Options{Piece: 512}, "rank 0 has a Piece of 0 bytes, rank 2 has a Piece of 512 bytes"},
		{quant.Int8, n, quant.Options{Feedback: true}, "rank 0 has Feedback false, rank 2 has Feedback true"},
	} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			c = ccltest.Split(t, c, 0, c.Rank())
			k, length, o := quant.Int8, n, quant.Options{}
			if c.Rank() == 2 {
				k, length, o = tc.k, tc.n, tc.o
			}
			r, err := quant.New(c, k, length, &o)
			require.NoError(t, err)
			err = r.Avg(t.Context(), normal(c.Rank(), length))
			require.ErrorContains(t, err, "quant: ranks differ: "+tc.want)
			require.ErrorIs(t, err, ccl.ErrAborted)
		})
	}
}
