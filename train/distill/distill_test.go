package distill_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/distill"
)

func random(seed uint64, n int) []float64 {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// The divergence is what its definition says, with the gradient that follows, however the vocabulary is split.
func TestLoss(t *testing.T) {
	const rows, words, padded, temperature = 4, 11, 13, 2.5
	student, teacher := random(7, rows*words), random(8, rows*words)
	weights := []float64{1, .5, 0, 2}
	probabilities := func(row []float64) (p []float64) {
		sum := 0.
		for _, x := range row {
			sum += math.Exp(x / temperature)
		}
		for _, x := range row {
			p = append(p, math.Exp(x/temperature)/sum)
		}
		return p
	}
	loss, d := 0., make([]float64, rows*words)
	for i := range rows {
		p, q := probabilities(student[i*words:(i+1)*words]), probabilities(teacher[i*words:(i+1)*words])
		for j := range p {
			loss += weights[i] / 3.5 * temperature * temperature * q[j] * math.Log(q[j]/p[j])
			d[i*words+j] = weights[i] / 3.5 * temperature * (p[j] - q[j])
		}
	}
	for _, n := range []int{1, 2, 3} {
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			lo, hi := data.Range(padded, c.Rank(), n)
			var s, q, want []float64
			for i := range rows {
				for j := lo; j < hi; j++ {
					if j < words {
						s, q, want = append(s, student[i*words+j]), append(q, teacher[i*words+j]), append(want, d[i*words+j])
					} else {
						s, q, want = append(s, 99), append(q, -99), append(want, 0)
					}
				}
			}
			g := &distill.Group{Comm: c, Temperature: temperature, Words: words}
			got, err := distill.Loss(t.Context(), g, s, s, q, weights, lo)
			require.NoError(t, err)
			require.InDelta(t, loss, got, 1e-12)
			require.InDeltaSlice(t, want, s, 1e-12)
			g.Divisor = 7 // of two micro batches such as this
			d := make([]float64, len(q))
			got, err = distill.Loss(t.Context(), g, d, q, q, weights, lo) // a student that has learned
			require.NoError(t, err)
			require.InDelta(t, 0, got, 1e-15)
			require.InDeltaSlice(t, make([]float64, len(q)), d, 1e-15)
		})
	}
}

// kl_div(log_softmax(x/2.5), softmax(t/2.5), reduction="batchmean")*2.5*2.5 of torch 2.15, and its gradient.
func TestLossAsTorch(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		d := make([]float64, 4)
		loss, err := distill.Loss(t.Context(), &distill.Group{Comm: c, Temperature: 2.5}, d, []float64{.3, -1.2, 2, .7},
			[]float64{1, .2, -.5, .1}, []float64{1}, 0)
		require.NoError(t, err)
		require.InDelta(t, 1.0458954100902516, loss, 1e-14)
		require.InDeltaSlice(t, []float64{-0.30865885890926426, -0.31853706037695334, 0.5892316271047402, 0.0379642921814775},
			d, 1e-15)
	})
}

// A word that the teacher never says counts as it does in torch, which has 0 times the logarithm of 0 as 0; one that the
// student never says either, as padding that both have masked, has no part in either.
func TestNeverSaid(t *testing.T) {
	never := math.Inf(-1)
	for _, student := range []float64{0, never} {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			d, p := make([]float64, 3), math.Exp(student)/(2+math.Exp(student))
			loss, err := distill.Loss(t.Context(), &distill.Group{Comm: c}, d, []float64{0, 0, student},
				[]float64{0, 0, never}, []float64{1}, 0)
			require.NoError(t, err)
			require.InDelta(t, -math.Log(1-p), loss, 1e-15) // the student has (1-p)/2 of either word, and the teacher 1/2
			require.InDeltaSlice(t, []float64{-p / 2, -p / 2, p}, d, 1e-15)
		})
	}
}

func TestRefused(t *testing.T) {
	one := []float64{1}
	_, err := distill.Loss(t.Context(), nil, one, one, one, one, 0)
	require.EqualError(t, err, "distill: a Group without a Comm")
	for want, call := range map[string]func(ctx context.Context, g *distill.Group) error{
		"distill: 1 logits, 2 of the teacher and 1 gradients for 1 weights, from entry 0": func(ctx context.Context,
			g *distill.Group) error {
			_, err := distill.Loss(ctx, g, one, one, []float64{1, 2}, one, 0)
			return err
		},
		"distill: a Temperature of -1, 0 Words, a Divisor of 0: none is negative, ": func(ctx context.Context,
			g *distill.Group) error {
			g.Temperature = -1
			_, err := distill.Loss(ctx, g, one, one, one, one, 0)
			return err
		},
		"distill: a Temperature of +Inf, 0 Words, ": func(ctx context.Context, g *distill.Group) error {
			g.Temperature = math.Inf(1)
			_, err := distill.Loss(ctx, g, one, one, one, one, 0)
			return err
		},
		"distill: row 1 has no words on any rank": func(ctx context.Context, g *distill.Group) error {
			_, err := distill.Loss(ctx, g, nil, nil, []float64{}, []float64{0, 1}, 0)
			return err
		},
		"distill: ranks differ in their weights, ": func(ctx context.Context, g *distill.Group) error {
			masks := [][]float64{{1, 1, 0}, {0, 0, 1}} // which one sum of them, each times its place, does not tell apart
			x := make([]float64, 3)
			_, err := distill.Loss(ctx, g, x, x, x, masks[g.Comm.Rank()], g.Comm.Rank())
			return err
		},
		"distill: ranks differ in their weights, Temperature, Words or Divisor": func(ctx context.Context,
			g *distill.Group) error {
			g.Temperature = float64(1 + g.Comm.Rank())
			_, err := distill.Loss(ctx, g, []float64{1}, one, one, one, g.Comm.Rank())
			return err
		},
	} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			require.ErrorContains(t, call(t.Context(), &distill.Group{Comm: c}), want) // or what rank 0 has aborted with
		})
	}
}
