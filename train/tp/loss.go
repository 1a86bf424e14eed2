package tp

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// CrossEntropy returns the mean loss over rows of logits whose vocabulary is split over g, and sets dlogits, which may be
// logits, to its gradient: Megatron's vocabulary-parallel loss, PyTorch's loss_parallel. Each row of logits is this
// rank's part of the vocabulary, which begins with the entry first. targets, a row each, count in the whole vocabulary.
//
// It makes two all-reduces of one number a row, the maximum and the sum of exponentials, and never moves the logits. A
// target that is in no rank's part is an error on all ranks; dlogits is then undefined.
func CrossEntropy[T ~float32 | ~float64](ctx context.Context, g *Group, dlogits, logits []T, targets []int32, first int) (float64, error) {
	if err := g.usable("CrossEntropy"); err != nil {
		return 0, err
	}
	rows := len(targets)
	if rows == 0 || len(logits)%rows != 0 || len(dlogits) != len(logits) || first < 0 {
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: %d logits, %d gradients and %d targets, from entry %d: each target needs a row of logits and one of gradients",
			len(logits), len(dlogits), rows, first))
	}
	words := len(logits) / rows
	g.scratch = slices.Grow(g.scratch[:0], 2*rows+2)[:2*rows+2]
	most, sums := g.scratch[:rows], g.scratch[rows:]
	for i := range rows {
		most[i] = math.Inf(-1)
		for _, x := range logits[i*words : (i+1)*words] {
			most[i] = max(most[i], float64(x))
		}
	}
	if err := g.reduce(ctx, most, ccl.Max); err != nil {
		return 0, err
	}
	var own, found float64 // the logits of targets here, less the maximum, and how many there are
	for i, t := range targets {
		row, out := logits[i*words:(i+1)*words], dlogits[i*words:(i+1)*words]
		if k := int(t) - first; k >= 0 && k < words {
			own += float64(row[k]) - most[i]
			found++
		}
		sums[i] = 0
		for j, x := range row {
			e := math.Exp(float64(x) - most[i])
			sums[i] += e
			out[j] = T(e)
		}
	}
	sums[rows], sums[rows+1] = own, found
	if err := g.reduce(ctx, sums, ccl.Sum); err != nil {
		return 0, err
	}
	if all := sums[rows+1]; all != float64(rows) {
		return 0, fmt.Errorf("tp: CrossEntropy: %[2]v of %[1]d targets are in the vocabulary of some rank; each must be in exactly one", rows, all)
	}
	loss := -sums[rows]
	for i, t := range targets {
		loss += math.Log(sums[i])
		scale := 1 / (sums[i] * float64(rows))
		out := dlogits[i*words : (i+1)*words]
		for j := range out {
			out[j] = T(float64(out[j]) * scale)
		}
		if k := int(t) - first; k >= 0 && k < words {
			out[k] -= T(1 / float64(rows))
		}
	}
	return loss / float64(rows), nil
}

// reduce combines x over the ranks.
func (g *Group) reduce(ctx context.Context, x []float64, op ccl.Op) error {
	defer g.count(time.Now(), 8*len(x))
	if err := ccl.AllReduce(ctx, g.Comm, x, x, op); err != nil {
		return fmt.Errorf("tp: CrossEntropy: %w", err)
	}
	return nil
}
