package tp_test

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/tp"
)

// mul is a [m][k] times b [k][n]; aT and bT say that one is stored transposed.
func mul(m, k, n int, a, b []float64, aT, bT bool) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for x := range k {
				p, q := i*k+x, x*n+j
				if aT {
					p = x*m + i
				}
				if bT {
					q = j*k + x
				}
				c[i*n+j] += a[p] * b[q]
			}
		}
	}
	return c
}

func random(seed int64, n int) []float64 {
	r := rand.New(rand.NewSource(seed))
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

func near(t testing.TB, want, got []float64, what string) {
	require.Len(t, got, len(want), what)
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-10, "%s, element %d", what, i)
	}
}

// A pair of split layers, y = scale(x)*A*B with A split by columns in three blocks, has the values and the gradients of
// the unsplit pair. The scale, one a column, stands for a norm: each rank holds it whole.
func TestPair(t *testing.T) {
	const tokens, width, hidden, blocks = 24, 6, 36, 3
	x, a, b, dy := random(1, tokens*width), random(2, width*hidden), random(3, hidden*width), random(4, tokens*width)
	scale := random(5, width)
	norm := func(x []float64) []float64 {
		out := make([]float64, len(x))
		for i := range x {
			out[i] = x[i] * scale[i%width]
		}
		return out
	}
	dnorm := func(x, d []float64) (dx, dscale []float64) {
		dx, dscale = norm(d), make([]float64, width)
		for i := range x {
			dscale[i%width] += x[i] * d[i]
		}
		return
	}
	// One rank, B's rows in the order in which the blocks are split.
	h := mul(tokens, width, hidden, norm(x), a, false, false)
	y := mul(tokens, hidden, width, h, b, false, false)
	dh := mul(tokens, width, hidden, dy, b, false, true)
	dfull := mul(tokens, hidden, width, dh, a, false, true)
	dx, dscale := dnorm(x, dfull)
	dA := mul(width, tokens, hidden, norm(x), dh, true, false)
	dB := mul(hidden, tokens, width, h, dy, true, false)
	columns := tp.Layout{Rows: width, Cols: hidden, Blocks: blocks}
	rows := tp.Layout{Rows: hidden, Cols: width, Blocks: blocks, ByRows: true}

	for _, opts := range [][]ccltest.Option{nil, {ccltest.Hosts(2)}} {
		for _, n := range []int{1, 2, 3, 4} {
			if opts != nil && n == 1 {
				continue
			}
			for _, sequence := range []bool{false, true} {
				var calls [3]atomic.Int64 // all-reduces, gathers, scatters
				var moved atomic.Int64    // elements, times n/(n-1)
				o := ccl.Options{OnCall: func(o ccl.Observation) {
					switch o.Call.Kind {
					case ccl.KindAllReduce:
						calls[0].Add(1)
						moved.Add(2 * int64(o.Call.Count))
					case ccl.KindAllGather:
						calls[1].Add(1)
						moved.Add(int64(n) * int64(o.Call.Count)) // of a part
					case ccl.KindReduceScatter:
						calls[2].Add(1)
						moved.Add(int64(n) * int64(o.Call.Count))
					}
				}}
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					ctx, r := t.Context(), c.Rank()
					g := &tp.Group{Comm: c, Sequence: sequence}
					k := len(x)
					lo, hi := 0, k
					if sequence {
						lo, hi = r*k/n, (r+1)*k/n
					}
					myA := shard(t, columns, a, r, n)
					myB := shard(t, rows, b, r, n)

					full, err := tp.Enter(ctx, g, make([]float64, k), norm(x[lo:hi]))
					require.NoError(t, err)
					myH := mul(tokens, width, hidden/n, full, myA, false, false)
					myY, err := tp.Leave(ctx, g, make([]float64, hi-lo), mul(tokens, hidden/n, width, myH, myB, false, false))
					require.NoError(t, err)
					near(t, y[lo:hi], myY, "y")

					d, err := tp.LeaveGrad(ctx, g, make([]float64, k), append([]float64(nil), dy[lo:hi]...))
					require.NoError(t, err)
					myDH := mul(tokens, width, hidden/n, d, myB, false, true)
					part, err := tp.EnterGrad(ctx, g, make([]float64, hi-lo), mul(tokens, hidden/n, width, myDH, myA, false, true))
					require.NoError(t, err)
					myDX, myScale := dnorm(x[lo:hi], part)
					near(t, dx[lo:hi], myDX, "dx")

					stats := g.Stats()
					want := tp.Stats{Calls: 2, Bytes: 2 * 8 * int64(k), Time: stats.Time}
					if sequence {
						want.Calls, want.Bytes = 4, 2*want.Bytes
					}
					require.Equal(t, want, stats)
					require.Zero(t, g.Stats().Calls)
					require.NoError(t, tp.SumGrads(ctx, g, myScale, make([]float64, 1)))
					near(t, dscale, myScale, "dscale")

					wantA := shard(t, columns, dA, r, n)
					near(t, wantA, mul(width, tokens, hidden/n, full, myDH, true, false), "dA")
					wantB := shard(t, rows, dB, r, n)
					near(t, wantB, mul(hidden/n, tokens, width, myH, d, true, false), "dB")
				}, append([]ccltest.Option{ccltest.With(o)}, opts...)...)
				// Forward and backward of one pair: 2 sums, of a layer 4. With Sequence each is a gather and a scatter.
				want := [3]int64{2, 0, 0}
				bytes := 2 * 2 * tokens * width
				if sequence {
					want = [3]int64{2, 2, 2} // the all-reduces are those of SumGrads
					bytes += 2 * (width + 1) // which is all that it moves more
				}
				require.EqualValues(t, n*bytes, moved.Load(), "with Sequence the same bytes")
				require.Equal(t, want, [3]int64{calls[0].Load() / int64(n), calls[1].Load() / int64(n), calls[2].Load() / int64(n)})
			}
		}
	}
}

// box is the elements of a box, row-major.
func box(w, shape, off, ext []int) []int {
	out := make([]int, 0, len(w))
	for i, x := range w {
		in := true
		for d, rest := len(shape)-1, i; d >= 0; d-- {
			k := rest % shape[d]
			rest /= shape[d]
			in = in && k >= off[d] && k < off[d]+ext[d]
		}
		if in {
			out = append(out, x)
		}
	}
	return out
}

func TestLayoutErrors(t *testing.T) {
	for _, tc := range []struct {
		l          tp.Layout
		len        int
		rank, size int
		want       string
	}{
		{tp.Layout{Rows: 4, Cols: 8}, 32, 0, 3, "tp: 8 columns in blocks of equal size, 1, do not divide among 3 ranks"},
		{tp.Layout{Rows: 4, Cols: 8, ByRows: true}, 32, 0, 3, "tp: 4 rows in blocks of equal size, 1, do not divide among 3 ranks"},
		{tp.Layout{Rows: 4, Cols: 8, Blocks: 3}, 32, 0, 2, "tp: 8 columns in blocks of equal size, 3, do not divide among 2 ranks"},
		{tp.Layout{Rows: 4, Cols: 8}, 31, 0, 2, "tp: 31 elements for a matrix of 4 x 8"},
		{tp.Layout{Rows: 4, Cols: 8}, 32, 2, 2, "tp: rank 2 of 2"},
		{tp.Layout{Rows: 4, Cols: 8}, 32, 0, 0, "tp: a matrix over 0 ranks"},
		{tp.Layout{Rows: -4, Cols: 8}, 32, 0, 2, "tp: a matrix of -4 x 8"},
		{tp.Layout{Rows: 1 << 40, Cols: 1 << 40}, 32, 0, 2, "tp: a matrix of 1099511627776 x 1099511627776"},
		{tp.Layout{Rows: 4, Cols: 8, Blocks: -1}, 32, 0, 2, "tp: a matrix in -1 blocks"},
	} {
		_, err := tp.Shard(tc.l, make([]float32, tc.len), tc.rank, tc.size)
		require.EqualError(t, err, tc.want)
		if tc.len == 32 {
			_, _, _, err = tc.l.Box(tc.rank, tc.size)
			require.EqualError(t, err, tc.want)
		}
	}
	_, err := tp.Unshard(tp.Layout{Rows: 2, Cols: 2}, [][]int{{1, 2}, {3}})
	require.EqualError(t, err, "tp: the part of rank 1 has 1 elements, not 2")
	_, err = tp.Unshard[int](tp.Layout{Rows: 2, Cols: 2}, nil)
	require.EqualError(t, err, "tp: a matrix over 0 ranks")
}

func TestTokensThatDoNotDivide(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		g := &tp.Group{Comm: c, Sequence: true}
		x := make([]float32, 7)
		_, err := tp.Enter(t.Context(), g, x, x[:3])
		require.EqualError(t, err, "tp: Enter: 7 elements of all tokens and 3 of this rank's; the tokens must divide among the 2 ranks")
		_, err = tp.Leave(t.Context(), g, x[:3], x)
		require.ErrorContains(t, err, "tp: Leave: 7 elements of all tokens")
	})
}

// A Group without a Comm is an error, and so is memory that a call cannot use: on one rank that fails the Comm.
func TestNoGroup(t *testing.T) {
	x := make([]float32, 4)
	for _, g := range []*tp.Group{nil, {}, {Sequence: true}} {
		ctx := t.Context()
		_, enter := tp.Enter(ctx, g, x, x)
		_, leave := tp.Leave(ctx, g, x, x)
		_, loss := tp.CrossEntropy(ctx, g, x, x, []int32{0}, 0)
		for what, err := range map[string]error{"Enter": enter, "Leave": leave, "CrossEntropy": loss, "SumGrads": tp.SumGrads(ctx, g, x)} {
			require.EqualError(t, err, "tp: "+what+": the Group is nil, or has no Comm")
		}
	}
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		all, part := make([]float32, 4), make([]float32, 2)
		if c.Rank() == 1 {
			part = all[1:3] // of which rank 1's part is [2:4]
		}
		_, err := tp.Leave(t.Context(), &tp.Group{Comm: c, Sequence: true}, part, all)
		require.ErrorContains(t, err, "dst and src overlap")
		ccltest.Barrier(t, world)
	})
}

// A SumGrads whose context ends fails the Comm, as the blocking exchanges do, and leaves the gradients to the caller.
func TestSumGradsGivesUp(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, 0)
		g, x := &tp.Group{Comm: c, Sequence: true}, []float32{1, 2}
		if c.Rank() == 0 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			require.ErrorIs(t, tp.SumGrads(ctx, g, x), context.DeadlineExceeded)
			var none context.Context
			require.Error(t, tp.SumGrads(none, g, x))
		}
		select {
		case <-c.Done():
		case <-time.After(10 * time.Second):
			t.Error("the Comm has not failed")
		}
		ccltest.Barrier(t, world)
		if c.Rank() == 1 {
			require.ErrorIs(t, tp.SumGrads(t.Context(), g, x), ccl.ErrAborted)
		}
		ccltest.Barrier(t, world)
		require.Equal(t, []float32{1, 2}, x)
	})
}

// Lengths that are wrong on one rank end the call on all, with that rank's reason.
func TestWrongOnOneRank(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		all := make([]float32, 12)
		for _, tc := range []struct { // not a map: all ranks make the same calls
			name string
			call func(g *tp.Group, x []float32) error
		}{
			{"Enter", func(g *tp.Group, x []float32) error { _, err := tp.Enter(ctx, g, all, x); return err }},
			{"EnterGrad", func(g *tp.Group, x []float32) error { _, err := tp.EnterGrad(ctx, g, x, all); return err }},
			{"Leave", func(g *tp.Group, x []float32) error { _, err := tp.Leave(ctx, g, x, all); return err }},
			{"LeaveGrad", func(g *tp.Group, x []float32) error { _, err := tp.LeaveGrad(ctx, g, all, x); return err }},
			{"CrossEntropy", func(g *tp.Group, x []float32) error {
				_, err := tp.CrossEntropy(ctx, g, x, x, []int32{0, 1}, 2*world.Rank())
				return err
			}},
		} {
			c := ccltest.Split(t, world, 0, 0)
			g := &tp.Group{Comm: c, Sequence: true}
			x := make([]float32, 4)
			if world.Rank() == 1 {
				x = x[:3]
			}
			err := tc.call(g, x)
			require.ErrorContains(t, err, "tp: "+tc.name+": ")
			require.ErrorContains(t, err, "3 ", tc.name)
			if world.Rank() != 1 {
				require.ErrorIs(t, err, ccl.ErrAborted, tc.name)
			}
			require.NoError(t, ccl.Barrier(ctx, world))
			require.NoError(t, c.Close())
		}
	})
}

// entropy is the loss and its gradient on one rank.
func entropy(logits []float64, targets []int32) (loss float64, d []float64) {
	v := len(logits) / len(targets)
	d = make([]float64, len(logits))
	for i, y := range targets {
		sum := 0.
		for j := range v {
			sum += math.Exp(logits[i*v+j] - 100)
		}
		for j := range v {
			d[i*v+j] = math.Exp(logits[i*v+j]-100) / sum / float64(len(targets))
		}
		d[i*v+int(y)] -= 1 / float64(len(targets))
		loss += math.Log(sum) + 100 - logits[i*v+int(y)]
	}
	return loss / float64(len(targets)), d
}

func TestCrossEntropy(t *testing.T) {
	const rows, vocabulary = 13, 50
	logits := random(1, rows*vocabulary)
	targets := make([]int32, rows)
	for i := range targets {
		targets[i] = int32(i * 37 % vocabulary)
		for j := range vocabulary {
			logits[i*vocabulary+j] = float64(float32(logits[i*vocabulary+j]*3 + 100)) // exp of it overflows a float32
		}
	}
	loss, d := entropy(logits, targets)
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Hosts(2)}} {
		for _, n := range []int{2, 3, 4} { // 50 divides by 2 only
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				g := &tp.Group{Comm: c}
				lo, hi := data.Range(vocabulary, c.Rank(), n)
				part := make([]float32, 0, rows*(hi-lo))
				for i := range rows {
					for _, x := range logits[i*vocabulary+lo : i*vocabulary+hi] {
						part = append(part, float32(x))
					}
				}
				got, err := tp.CrossEntropy(t.Context(), g, part, part, targets, lo) // in place
				require.NoError(t, err)
				require.InDelta(t, loss, got, 1e-6)
				for i := range rows {
					for j := range hi - lo {
						require.InDelta(t, d[i*vocabulary+lo+j], part[i*(hi-lo)+j], 1e-6)
					}
				}
				require.Equal(t, 2, g.Stats().Calls)
				// A target that is in no part, and shapes that do not fit.
				bad := append([]int32(nil), targets...)
				bad[3] = vocabulary
				_, err = tp.CrossEntropy(t.Context(), g, part, part, bad, lo)
				require.EqualError(t, err, fmt.Sprintf("tp: CrossEntropy: target %d of row 3 is in the vocabulary of 0 ranks; each must be in exactly one", vocabulary))
				for _, bad := range [][]int32{nil, targets[:7]} {
					own := ccltest.Split(t, c, 0, 0)
					_, err = tp.CrossEntropy(t.Context(), &tp.Group{Comm: own}, part, part, bad, lo)
					require.ErrorContains(t, err, "each target needs a row of logits and one of gradients")
					ccltest.Barrier(t, c)
					require.NoError(t, own.Close())
				}
			}, opts...)
		}
	}
}
