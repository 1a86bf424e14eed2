package ccl_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Ones beside a number that has no room for them are lost one by one, but not together.
func TestSumsOfHalvesRoundOnce(t *testing.T) {
	ccltest.Run(t, 5, func(t testing.TB, c *ccl.Comm) {
		x, y := []ccl.BFloat16{ccl.ToBFloat16(1)}, []ccl.Float16{ccl.ToFloat16(1)}
		if c.Rank() == 0 {
			x[0], y[0] = ccl.ToBFloat16(256), ccl.ToFloat16(2048)
		}
		require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
		require.NoError(t, ccl.AllReduce(t.Context(), c, y, y, ccl.Sum))
		require.Equal(t, float32(260), x[0].Float32())
		require.Equal(t, float32(2052), y[0].Float32())
	})
}

// Sums of 16-bit floats inside a host are those of float32 in rank order, rounded once, whatever way the data take.
func TestSumsOfHalves(t *testing.T) {
	for _, n := range []int{3, 4} {
		play := func(t testing.TB, c *ccl.Comm) {
			halves(t, c, func(x float64) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) }, func(x ccl.BFloat16) float64 { return float64(x.Float32()) })
			halves(t, c, func(x float64) ccl.Float16 { return ccl.ToFloat16(float32(x)) }, func(x ccl.Float16) float64 { return float64(x.Float32()) })
		}
		t.Run(fmt.Sprintf("goroutines/%d", n), func(t *testing.T) { ccltest.Run(t, n, play) })
		for _, reads := range []string{"0", "1"} {
			t.Run(fmt.Sprintf("processes/%d/%s", n, reads), func(t *testing.T) {
				t.Setenv("GOCCL_SHM_READ", reads) // for the processes that are started
				ccltest.Run(t, n, play, ccltest.Processes(n), ccltest.Deadline(5*time.Minute))
			})
		}
	}
}

func halves[T ccl.Number](t testing.TB, c *ccl.Comm, enc func(float64) T, dec func(T) float64) {
	ctx, n, me := t.Context(), c.Size(), c.Rank()
	round := func(x float64) float64 { return dec(enc(x)) }
	counts := []int{1, 37, 700, 5_003, 40_001, 300_007}
	if testing.Short() {
		counts = []int{1, 700, 5_003, 70_001}
	}
	for _, count := range counts {
		shared, err := ccl.MakeSlice[T](ctx, c, 2*n*count)
		require.NoError(t, err)
		for name, memory := range map[string][]T{"own": make([]T, 2*n*count), "shared": shared} {
			src, dst := memory[:n*count], memory[n*count:]
			inputs := make([]T, n*count)
			sums, averages := make([]T, n*count), make([]T, n*count)
			x := make([]float64, n)
			for i := range inputs {
				for r := range x {
					x[r] = round(rough(r, i))
				}
				inputs[i] = enc(x[me])
				sums[i], averages[i] = enc(sumOnce(ccl.Sum, x, round)), enc(sumOnce(ccl.Avg, x, round))
			}
			is := func(got, want []T, what string) {
				require.NoError(t, differences(got, want), "%s of %d in %s memory, %v", what, count, name, c)
			}
			fresh := func() { copy(src, inputs); clear(dst) }

			fresh()
			require.NoError(t, ccl.AllReduce(ctx, c, dst, src, ccl.Sum))
			is(dst, sums, "AllReduce")
			is(src, inputs, "the operand of AllReduce")
			require.NoError(t, ccl.AllReduce(ctx, c, src, src, ccl.Avg))
			is(src, averages, "AllReduce in place")
			fresh()
			require.NoError(t, ccl.Reduce(ctx, c, dst, src, ccl.Sum, n-1))
			if me == n-1 {
				is(dst, sums, "Reduce")
			}
			require.NoError(t, ccl.ReduceScatter(ctx, c, dst[:count], src, ccl.Avg))
			is(dst[:count], averages[me*count:][:count], "ReduceScatter")
			mine := src[me*count:][:count]
			require.NoError(t, ccl.ReduceScatter(ctx, c, mine, src, ccl.Sum))
			is(mine, sums[me*count:][:count], "ReduceScatter in place")

			fresh()
			parts := slices.Repeat([]int{0}, n)
			parts[0], parts[n-1] = count, (n-1)*count
			at := 0
			for _, k := range parts[:me] {
				at += k
			}
			require.NoError(t, ccl.ReduceScatterV(ctx, c, dst[:parts[me]], src, parts, ccl.Sum))
			is(dst[:parts[me]], sums[at:][:parts[me]], "ReduceScatterV")

			fresh()
			require.NoError(t, c.On(nil).Group(func(g ccl.Queue) error { // which are one call, if they are small
				g.AllReduce(ccl.BufOf(src[:count]), ccl.InPlace(), ccl.Sum)
				g.AllReduce(ccl.BufOf(src[count:]), ccl.InPlace(), ccl.Sum)
				return nil
			}).Wait(ctx))
			is(src, sums, "a group")
		}
	}
}

// The average of 16-bit floats is a number where each of them is, and does not vanish where none of them does: their sum is
// not rounded before it is divided, and what hosts send each other is no sum. Of Scaled the same holds.
func TestAveragesOfHalvesStayInRange(t *testing.T) {
	play := func(t testing.TB, c *ccl.Comm) {
		inRange(t, c, []float32{60000, 65504, -65504, 0x1p-24, 0x3p-24, 0x1p-14, 1, 0}, ccl.ToFloat16, ccl.Float16.Float32)
		inRange(t, c, []float32{3e38, -3e38, 0x1p-133, 0x3p-133, 0x1p-126, 1, 0}, ccl.ToBFloat16, ccl.BFloat16.Float32)
	}
	for _, tc := range []struct {
		name string
		n    int
		opts []ccltest.Option
	}{
		{"one", 1, nil}, {"two", 2, nil}, {"four", 4, nil}, {"processes", 3, []ccltest.Option{ccltest.Processes(3)}},
		{"two hosts", 2, []ccltest.Option{ccltest.Hosts(2)}}, {"three hosts", 3, []ccltest.Option{ccltest.Hosts(3)}},
		{"two hosts of two", 4, []ccltest.Option{ccltest.Hosts(2)}}, {"seven hosts", 7, []ccltest.Option{ccltest.Hosts(7)}},
	} {
		t.Run(tc.name, func(t *testing.T) { ccltest.Run(t, tc.n, play, tc.opts...) })
	}
	t.Run("in rank order", func(t *testing.T) {
		ccltest.Run(t, 5, play, ccltest.Hosts(5), ccltest.With(ccl.Options{RankOrder: true}))
	})
}

// reductions makes each reduction of what fill puts into src, and leaves src filled; is compares a result, the elements from one on.
func reductions[T ccl.Number](t testing.TB, c *ccl.Comm, op ccl.Op, dst, src []T, fill func(), is func(got []T, from int, what string)) {
	ctx, me, last, part := t.Context(), c.Rank(), c.Size()-1, len(src)/c.Size()
	fill()
	require.NoError(t, ccl.AllReduce(ctx, c, dst, src, op))
	is(dst, 0, "AllReduce")
	require.NoError(t, ccl.AllReduce(ctx, c, src, src, op))
	is(src, 0, "AllReduce in place")
	fill()
	require.NoError(t, ccl.Reduce(ctx, c, dst, src, op, last))
	if me == last {
		is(dst, 0, "Reduce")
	}
	fill()
	require.NoError(t, ccl.ReduceScatter(ctx, c, dst[:part], src, op))
	is(dst[:part], me*part, "ReduceScatter")
	fill()
}

// inRange averages elements that are the same on all ranks, which makes each of them its average.
func inRange[T ccl.Number](t testing.TB, c *ccl.Comm, values []float32, enc func(float32) T, dec func(T) float32) {
	ctx, n := t.Context(), c.Size()
	counts := []int{1, 37, 5_003, 300_007}
	if testing.Short() {
		counts = []int{1, 37, 20_011}
	}
	least := math.Inf(1)
	for _, x := range values {
		if x != 0 {
			least = min(least, math.Abs(float64(x)))
		}
	}
	for _, count := range counts {
		for _, op := range []ccl.Op{ccl.Avg, c.Scaled(1 / float64(n))} {
			// Of other numbers of hosts the sums on the way are rounded, and the factor is.
			exact := n&(n-1) == 0 || op == ccl.Avg && c.Place().Nodes == 1
			src, dst := make([]T, n*count), make([]T, n*count)
			fill := func() {
				for i := range src {
					src[i], dst[i] = enc(values[i%len(values)]), enc(7)
				}
			}
			is := func(got []T, from int, what string) {
				for i, x := range got {
					want := dec(enc(values[(from+i)%len(values)]))
					if got := dec(x); got != want && (exact || math.Abs(float64(got-want)) > max(.03*math.Abs(float64(want)), least)) {
						require.FailNow(t, "wrong", "%s of %d: element %d is %g, not %g: %v, %v", what, count, from+i, got, want, op, c)
					}
				}
			}
			reductions(t, c, op, dst, src, fill, is)
			require.NoError(t, c.On(nil).Group(func(g ccl.Queue) error {
				g.AllReduce(ccl.BufOf(src[:count]), ccl.InPlace(), op)
				g.AllReduce(ccl.BufOf(src[count:]), ccl.InPlace(), op)
				return nil
			}).Wait(ctx))
			is(src, 0, "a group")
		}
	}
}

// Scaled multiplies Sum's result, between hosts as on one: each 16-bit float of one rank, beside zeros, keeps what Sum keeps of it, down
// to the least there is, and by whatever factor. What is multiplied by less than 1 does not overflow on the way.
func TestScaledKeepsWhatSumKeeps(t *testing.T) {
	for _, tc := range []struct{ n, hosts int }{{3, 3}, {4, 4}, {5, 5}, {4, 2}, {5, 1}} {
		t.Run(fmt.Sprintf("%d ranks on %d hosts", tc.n, tc.hosts), func(t *testing.T) {
			ccltest.Run(t, tc.n, func(t testing.TB, c *ccl.Comm) {
				keepsWhatSumKeeps(t, c, ccl.ToFloat16, ccl.Float16.Float32)
				keepsWhatSumKeeps(t, c, ccl.ToBFloat16, ccl.BFloat16.Float32)
				x := []ccl.Float16{ccl.ToFloat16(60000)}
				third := ccl.ToFloat16(1. / 3).Float32()
				require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, c.Scaled(1/float64(tc.n))))
				require.InEpsilon(t, 60000, x[0].Float32(), 1e-3)
				x[0] = ccl.ToFloat16(60000)
				if c.Rank() > 2 {
					x[0] = 0
				}
				require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, c.Scaled(1./3)))
				require.InEpsilon(t, 180000*third, x[0].Float32(), 1e-3)
			}, ccltest.Hosts(tc.hosts))
		})
	}
}

func keepsWhatSumKeeps[T ccl.Float16 | ccl.BFloat16](t testing.TB, c *ccl.Comm, enc func(float32) T, dec func(T) float32) {
	ctx, n, me := t.Context(), c.Size(), c.Rank()
	all := (1<<16 + n - 1) / n * n // and some once more
	src, sum, got := make([]T, all), make([]T, all), make([]T, all)
	fill := func() {
		clear(src)
		for i := me; i < all; i += n {
			src[i] = T(i)
		}
	}
	counts := slices.Repeat([]int{all / n}, n)
	counts[0], counts[n-1] = 1, counts[n-1]+counts[0]-1
	at := 0
	for _, k := range counts[:me] {
		at += k
	}
	fill()
	require.NoError(t, ccl.AllReduce(ctx, c, sum, src, ccl.Sum))
	for _, factor := range []float64{1, -1, 1.5, 1024, math.Inf(1), .5, .25, 1. / 3, -1. / 3, .1, 0x1p-10, 0} {
		op, times := c.Scaled(factor), dec(enc(float32(factor)))
		is := func(got []T, from int, what string) {
			for i, x := range got {
				want := enc(dec(sum[from+i]) * times)
				if x != want && !(dec(x) != dec(x) && dec(want) != dec(want)) {
					require.FailNow(t, "wrong", "%s: %v on %v: the sum is %g, times %g: %g, not %g", what, from+i, c, dec(sum[from+i]), factor, dec(x), dec(want))
				}
			}
		}
		reductions(t, c, op, got, src, fill, is)
		require.NoError(t, ccl.ReduceScatterV(ctx, c, got[:counts[me]], src, counts, op))
		is(got[:counts[me]], at, "ReduceScatterV")
	}
}
