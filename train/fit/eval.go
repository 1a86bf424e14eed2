package fit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/fit/internal/units"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// A Score is that of a model on tokens: means over those that count, of all ranks.
type Score struct {
	// Loss is the mean of the negative logarithms of the tokens' probabilities, and Perplexity its exponential.
	Loss, Perplexity float64
	// Accuracy is the share of tokens that the model thinks most likely.
	Accuracy float64
	// Tokens is how many count.
	Tokens int64
}

// Eval scores the model on batches, without dropout. All ranks have as many; one that has fewer rows
// pads with wanted tokens below 0.
func (t *Trainer) Eval(ctx context.Context, batches []Batch) (Score, error) {
	sums, ranks := make([]float64, 3), []int64{int64(len(batches)), -int64(len(batches))}
	if err := ccl.AllReduce(ctx, t.u.M.World(), ranks, ranks, ccl.Max); err != nil {
		return Score{}, t.fail(err)
	}
	if ranks[0] != -ranks[1] {
		return Score{}, t.fail(fmt.Errorf("fit: Eval of %d batches on one rank and %d on another: pad with wanted tokens below 0", -ranks[1], ranks[0]))
	}
	for _, b := range batches {
		x, err := t.score(ctx, b)
		if err != nil {
			return Score{}, t.fail(err)
		}
		sums[0], sums[1], sums[2] = sums[0]+float64(x[0]), sums[1]+float64(x[1]), sums[2]+float64(counted(b.Wanted))
	}
	if err := ccl.AllReduce(ctx, t.u.M.World(), sums, sums, ccl.Sum); err != nil {
		return Score{}, t.fail(err)
	}
	n := sums[2]
	if n == 0 { // on all ranks
		return Score{}, t.fail(errors.New("fit: Eval: no wanted token counts on any rank: there is nothing to score"))
	}
	return Score{sums[0] / n, math.Exp(sums[0] / n), sums[1] / n, int64(sums[2])}, nil
}

// score is the sum of the losses of a batch's tokens, and how many of its tokens the model has guessed.
func (t *Trainer) score(ctx context.Context, b Batch) ([]float32, error) {
	w := &units.Walk{T: t.u, Ctx: ctx}
	in, err := t.put(b)
	w.Live, w.Err = in.Args, err
	var x []*xla.Buffer
	for u := range t.u.Model.Units {
		var p *xla.Program
		if w.Err == nil {
			p, err = t.u.Program(ctx, t.u.Model.Kind(u)+"_eval", func(f *hlo.Func) []nn.V {
				has := map[string]nn.V{}
				t.u.Declare(f, u, has)
				x, pass := t.u.X(f, u), t.u.Pass(f, has)
				if u < t.u.Last() {
					return []nn.V{t.u.Model.Write(pass, u, x)}
				}
				sums := t.u.Model.Sums(pass, x, 2, func(p *nn.Pass, y nn.V) []nn.V {
					return []nn.V{t.u.Model.LossSum(p, y), guessed(y, p.In[1])}
				})
				return []nn.V{hlo.Cat(0, sums[0].As(hlo.F32).Reshape(1), sums[1].As(hlo.F32).Reshape(1))}
			})
		}
		x = w.Run(p, err, u, slices.Concat(x, in.Args)...)
	}
	out := make([]float32, 2)
	if w.Err == nil {
		w.Err = xla.Get(x[0], out)
	}
	return out, w.End(nil)
}

// guessed is how many of the tokens that count are those of the largest logit, the first of equals.
func guessed(logits, want nn.V) nn.V {
	n, v := want.Len(), logits.Dims()[logits.Rank()-1]
	return hlo.ArgMax(1, logits.As(hlo.F32).Reshape(n, v)).Cmp("EQ", want.Reshape(n)).As(hlo.F32).SumAll()
}
