package ccl_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// TestScaled sums what the ranks have, multiplied by a factor, with every call that reduces, and type that can.
func TestScaled(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "processes": {ccltest.Processes(n)}, "hosts": {ccltest.Hosts(n)}} {
			t.Run(fmt.Sprintf("%d/%s", n, name), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					scaled(t, c, func(x float64) float32 { return float32(x) })
					scaled(t, c, func(x float64) float64 { return x })
					scaled(t, c, func(x float64) ccl.BFloat16 { return ccl.ToBFloat16(float32(x)) })
					scaled(t, c, func(x float64) ccl.Float16 { return ccl.ToFloat16(float32(x)) })
				}, opts...)
			})
		}
	}
}

// scaled has numbers that all types have exactly.
func scaled[T ccl.Number](t testing.TB, c *ccl.Comm, of func(float64) T) {
	ctx, n, me := t.Context(), c.Size(), c.Rank()
	for _, k := range []int{1, 3, 4096, 100_000} {
		if testing.Short() && k > 4096 && n != 2 {
			break
		}
		factors := []float64{0.5, 0.25}
		if me == 1 { // made in another order
			c.Scaled(factors[1])
		}
		for _, factor := range factors {
			op := c.Scaled(factor)
			require.Equal(t, op, c.Scaled(factor))
			require.Equal(t, "mulsum", op.String())
			sum := func(i int) T { // of (rank+1)*(i%4) over the ranks
				return of(factor * float64(n*(n+1)/2) * float64(i%4))
			}
			x, y := make([]T, n*k), make([]T, n*k)
			fill := func() {
				for i := range x {
					x[i], y[i] = of(float64((me+1)*(i%4))), of(-1)
				}
			}
			is := func(got []T, from int, what string) {
				for i, v := range got {
					if v != sum(from+i) {
						require.FailNow(t, what, "%T %d of %d times %v: %v, should be %v", v, i, k, factor, v, sum(from+i))
					}
				}
			}
			reductions(t, c, op, y, x, fill, is)
			counts := make([]int, n)
			for r := range counts {
				counts[r] = k
			}
			require.NoError(t, ccl.ReduceScatterV(ctx, c, y[:k], x, counts, op))
			is(y[:k], me*k, "ReduceScatterV")
			fill()
			require.NoError(t, c.On(nil).AllReduce(ccl.BufOf(x), ccl.InPlace(), op).Wait(ctx))
			is(x, 0, "queued")
		}
	}
}

// TestScaledRefused: what is wrong with an operator of Scaled is an error of the rank that has it, before anything is sent.
func TestScaledRefused(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		part := ccltest.Split(t, c, 0, c.Rank())
		op := c.Scaled(2)
		wrong := func(err error, text string) {
			var e *ccl.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, ccl.ErrArgument, e.Code)
			require.ErrorContains(t, err, text)
		}
		i, b, f := []int32{1}, []ccl.Float8E5M2{1}, []float32{1}
		wrong(ccl.AllReduce(ctx, c, b, b, op), "Scaled multiplies floating-point elements of 16 bits and more, not f8e5m2")
		wrong(ccl.AllReduce(ctx, c, i, i, op), "Scaled multiplies floating-point elements of 16 bits and more, not int32")
		wrong(ccl.AllReduce(ctx, part, f, f, op), "an operator that Scaled made is valid only on its own Comm")
		for k := range 238 {
			c.Scaled(float64(k) + 3)
		}
		require.NoError(t, ccl.AllReduce(ctx, c, f, f, c.Scaled(240)))
		require.EqualValues(t, 480, f[0])
		wrong(ccl.AllReduce(ctx, c, f, f, c.Scaled(241)), "too many factors: a Comm has room for 239")
		require.NoError(t, ccl.Barrier(ctx, c))
	})
}

// All NaNs are one factor, which does not equal itself; 0 and -0, which are equal, are two.
func TestScaledOddFactors(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		zero, minus := c.Scaled(0), c.Scaled(math.Copysign(0, -1))
		for _, tc := range []struct {
			op  ccl.Op
			neg bool
		}{{zero, false}, {minus, true}} {
			x := []float64{1}
			require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, tc.op))
			require.Equal(t, []any{0.0, tc.neg}, []any{math.Abs(x[0]), math.Signbit(x[0])})
		}
		nan := math.Float64frombits(math.Float64bits(math.NaN()) ^ uint64(c.Rank())<<63) // of other bits on each rank
		require.Equal(t, c.Scaled(math.NaN()), c.Scaled(nan))
		x := []float64{1}
		require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, c.Scaled(nan)))
		require.True(t, math.IsNaN(x[0]))
	})
}

// TestScaledDiffers: ranks with different factors disagree about the call, and the error has both, of every call that reduces, with the
// operators made in any order.
func TestScaledDiffers(t *testing.T) {
	for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "processes": {ccltest.Processes(2)}, "hosts": {ccltest.Hosts(2)}} {
		for kind, call := range map[string]func(ctx context.Context, c *ccl.Comm, op ccl.Op) error{
			"AllReduce": func(ctx context.Context, c *ccl.Comm, op ccl.Op) error {
				f := []float32{1}
				return ccl.AllReduce(ctx, c, f, f, op)
			},
			"Reduce": func(ctx context.Context, c *ccl.Comm, op ccl.Op) error {
				f := []float32{1}
				return ccl.Reduce(ctx, c, f, f, op, 1)
			},
			"ReduceScatter": func(ctx context.Context, c *ccl.Comm, op ccl.Op) error {
				return ccl.ReduceScatter(ctx, c, make([]float32, 1), []float32{1, 2}, op)
			},
			"queued": func(ctx context.Context, c *ccl.Comm, op ccl.Op) error {
				return c.On(nil).AllReduce(ccl.BufOf([]float32{1}), ccl.InPlace(), op).Wait(ctx)
			},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
					defer c.Close()
					factors := []float64{0.25, 3}
					c.Scaled(7) // so that the operators' numbers say nothing
					if c.Rank() == 1 {
						c.Scaled(factors[1])
						c.Scaled(8)
					}
					// A barrier after the call, in which a rank that waits for nobody in it finds out.
					err := call(context.Background(), c, c.Scaled(factors[c.Rank()]))
					if err == nil {
						err = ccl.Barrier(context.Background(), c)
					}
					var e *ccl.Error
					require.ErrorAs(t, err, &e)
					require.Equal(t, ccl.ErrMismatch, e.Code)
					require.Equal(t, 1-c.Rank(), e.Peer)
					if kind == "AllReduce" || kind == "queued" {
						require.Contains(t, callSite.ReplaceAllString(err.Error(), ""), fmt.Sprintf("differs: here AllReduce float x 1 mulsum by %v, rank %d has AllReduce float x 1 mulsum by %v",
							factors[c.Rank()], 1-c.Rank(), factors[1-c.Rank()]))
					}
					if e.Mine != nil && e.Mine.Kind != ccl.KindBarrier {
						require.Equal(t, factors[c.Rank()], e.Mine.Factor)
						require.Equal(t, factors[1-c.Rank()], e.Theirs.Factor)
					}
				}, opts...)
			})
		}
	}
}

// TestScaledAllocates nothing after its first call.
func TestScaledAllocates(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		f, op := make([]float32, 1000), c.Scaled(0.5)
		require.NoError(t, ccl.AllReduce(t.Context(), c, f, f, op))
		ctx := context.Background()
		require.Zero(t, testing.AllocsPerRun(100, func() { _ = ccl.AllReduce(ctx, c, f, f, op) }))
	})
}

func ExampleComm_Scaled() {
	c, err := ccl.Join(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	const lossScale = 1024
	grad := []float32{2048, 512}
	err = ccl.AllReduce(context.Background(), c, grad, grad, c.Scaled(1/float64(lossScale*c.Size())))
	fmt.Println(grad, err)
	// Output: [2 0.5] <nil>
}
