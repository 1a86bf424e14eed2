package tp

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

// Ignored is the target of a row that does not count, as PyTorch's ignore_index: padding, or the words of a prompt.
const Ignored = -100

// LossOptions are those of RowsCrossEntropy. All ranks of the Group pass the same.
type LossOptions struct {
	// Weights are how much each row counts; nil: 1.
	Weights []float64
	// Divisor is what the weighted sum of the losses is divided by, such as the number of tokens of all micro batches
	// and ranks; 0: the weights of the rows that are not Ignored. Where none counts the loss is 0.
	Divisor float64
	// Words is the size of the vocabulary without padding: entries from Words on, of the whole, are in
	// no softmax, and their gradients are 0. 0: none is padding.
	Words int
	// Smoothing is the share of a row's target that all words have alike, from 0 to 1: label smoothing, as
	// torch.nn.CrossEntropyLoss has it (Szegedy et al. 2016).
	Smoothing float64
	// Z times the square of the logarithm of a row's sum of exponentials is added to its loss, so that
	// logits do not drift: the z-loss of PaLM (Chowdhery et al. 2022), which takes 1e-4.
	Z float64
	// Losses is set to the loss of each row, without its weight: 0 of one that is Ignored. Nil: it is not wanted.
	Losses []float64

	chunked [3]float64 // of ChunkedCrossEntropy: all rows, those of a chunk, 0 without chunks, and count of all rows
}

// CrossEntropy returns the mean loss over rows of logits whose vocabulary is split over g, and sets
// dlogits, which may be logits, to its gradient: Megatron's vocabulary-parallel loss, PyTorch's
// loss_parallel. Each row of logits is this rank's part of the vocabulary, which begins with the
// entry first. targets, a row each, count in the whole vocabulary. A row whose target is Ignored
// does not count, and has no gradient. The loss of no rows is 0, as of a rank that has no more in a
// ddp.Join: then no rank of g has any.
//
// It makes two all-reduces, of one number a row and of three, of four with Smoothing, and never moves
// the logits. A target that is in no rank's part, or in that of several, is an error on all ranks, as
// are targets that differ between ranks; dlogits is then undefined.
func CrossEntropy[T ~float32 | ~float64](ctx context.Context, g *Group, dlogits, logits []T, targets []int32,
	first int) (float64, error) {
	return RowsCrossEntropy(ctx, g, dlogits, logits, targets, first, LossOptions{})
}

// RowsCrossEntropy is CrossEntropy with the losses of the rows, or with a weight for each.
func RowsCrossEntropy[T ~float32 | ~float64](ctx context.Context, g *Group, dlogits, logits []T, targets []int32,
	first int, o LossOptions) (float64, error) {
	return crossEntropy(ctx, g, dlogits, logits, targets, first, o, 0)
}

// crossEntropy is RowsCrossEntropy of rows that come after others, which have a loss already.
func crossEntropy[T ~float32 | ~float64](ctx context.Context, g *Group, dlogits, logits []T, targets []int32,
	first int, o LossOptions, loss float64) (float64, error) {
	if err := g.usable("CrossEntropy"); err != nil {
		return 0, err
	}
	rows := len(targets)
	switch {
	case len(logits)%max(rows, 1) != 0 || rows == 0 && len(logits) != 0 || len(dlogits) != len(logits) || first < 0:
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: %d logits, %d gradients and %d targets, from entry %d: each target needs a row of logits and one of gradients",
			len(logits), len(dlogits), rows, first))
	case o.Weights != nil && len(o.Weights) != rows || o.Losses != nil && len(o.Losses) != rows:
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: %d weights and %d losses for %d targets", len(o.Weights),
			len(o.Losses), rows))
	case o.Divisor < 0 || math.IsNaN(o.Divisor):
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: the losses cannot be divided by %v", o.Divisor))
	case !(o.Smoothing >= 0 && o.Smoothing <= 1) || !(o.Z >= 0):
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: Smoothing is %v and Z %v: the one is from 0 to 1, the other not negative",
			o.Smoothing, o.Z))
	case o.Words < 0:
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: a vocabulary of %d words", o.Words))
	}
	width := len(logits) / max(rows, 1) // of a row
	words := o.within(first, width)
	smooth := 0 // numbers that it takes: the sum of a row's logits, and the size of the vocabulary
	if o.Smoothing > 0 {
		smooth = rows + 1
	}
	g.scratch = slices.Grow(g.scratch[:0], 4*rows+1+smooth)[:4*rows+1+smooth]
	most, sums, own := g.scratch[:rows], g.scratch[rows:2*rows], g.scratch[2*rows:3*rows]
	found, totals := g.scratch[3*rows:4*rows+1], g.scratch[4*rows+1:]
	for i := range rows {
		most[i] = math.Inf(-1)
		for _, x := range logits[i*width : i*width+words] {
			most[i] = max(most[i], float64(x))
		}
	}
	if err := g.reduce(ctx, most, ccl.Max); err != nil {
		return 0, err
	}
	for i, t := range targets {
		row, out := logits[i*width:i*width+words], dlogits[i*width:i*width+words]
		own[i], found[i] = 0, 0 // the logit of the target, less the maximum, and in how many parts it is
		if k := int(t) - first; t >= 0 && k >= 0 && k < words {
			own[i], found[i] = float64(row[k])-most[i], 1
		}
		sums[i] = 0
		total := 0.
		for j, x := range row {
			below := float64(x) - most[i]
			e := math.Exp(below)
			sums[i] += e
			total += below
			out[j] = T(e)
		}
		if smooth > 0 {
			totals[i], totals[rows] = total, float64(words)
		}
	}
	mine := o.hash(targets)
	found[rows] = mine
	if err := g.reduce(ctx, g.scratch[rows:], ccl.Sum); err != nil {
		return 0, err
	}
	if found[rows] != mine*float64(g.Comm.Size()) {
		return 0, g.refuse(fmt.Errorf("tp: CrossEntropy: ranks differ in their targets or weights"))
	}
	for i, t := range targets {
		if t != Ignored {
			if found[i] != 1 {
				return 0, fmt.Errorf("tp: CrossEntropy: target %d of row %d is in the vocabulary of %v ranks; each must be in exactly one", t, i, found[i])
			}
		}
	}
	count := o.count(targets)
	for i, t := range targets {
		clear(dlogits[i*width+words : (i+1)*width])
		out := dlogits[i*width : i*width+words]
		x, w, each, all := 0., 0., 0., 0.
		if t != Ignored {
			log := math.Log(sums[i])
			x, all = log-own[i], 2*o.Z*(log+most[i])
			if smooth > 0 {
				each = o.Smoothing / totals[rows]
				x += float64(o.Smoothing*own[i]) - float64(each*totals[i])
			}
			x += float64(o.Z * (log + most[i]) * (log + most[i]))
			if count != 0 {
				w = o.weight(i) / count
			}
			if w != 0 { // else the row may be anything, as in one that is padding
				loss += float64(w * x)
			}
		}
		if o.Losses != nil {
			o.Losses[i] = x
		}
		if w == 0 {
			clear(out)
			continue
		}
		scale, each := w*(1+all)/sums[i], float64(w*each)
		for j := range out {
			out[j] = T(float64(float64(out[j])*scale) - each)
		}
		if k := int(t) - first; k >= 0 && k < words {
			out[k] -= T(w * (1 - o.Smoothing))
		}
	}
	return loss, nil
}

// within is how many of the width entries from first on are words.
func (o *LossOptions) within(first, width int) int {
	if o.Words == 0 {
		return width
	}
	return min(max(o.Words-first, 0), width)
}

// Mask sets those of the logits to -Inf that are padding of a vocabulary of so many words: rows of
// width entries each, which begin with the entry first of the whole. No greatest logit and no
// sample is padding then; the loss takes LossOptions.Words instead, and needs no Mask.
func Mask[T ~float32 | ~float64](logits []T, width, first, words int) error {
	if width < 1 || len(logits)%width != 0 || first < 0 || words < 1 {
		return fmt.Errorf("tp: Mask: %d logits in rows of %d, from entry %d, of a vocabulary of %d words", len(logits),
			width, first, words)
	}
	o := LossOptions{Words: words}
	for at := 0; at < len(logits); at += width {
		for i := at + o.within(first, width); i < at+width; i++ {
			logits[i] = T(math.Inf(-1))
		}
	}
	return nil
}

// count is what the sum of the losses is divided by.
func (o *LossOptions) count(targets []int32) (all float64) {
	if o.chunked[1] > 0 || o.Divisor != 0 {
		return cmp.Or(o.Divisor, o.chunked[2])
	}
	for i, t := range targets {
		if t != Ignored {
			all += o.weight(i)
		}
	}
	return all
}

func (o *LossOptions) weight(row int) float64 {
	if o.Weights == nil {
		return 1
	}
	return o.Weights[row]
}

// hash is a number of 32 bits, so that a sum over ranks is exact, for what the ranks must agree on.
func (o *LossOptions) hash(targets []int32) float64 {
	h := fnv.New32a()
	var b [8]byte
	add := func(x uint64) {
		binary.LittleEndian.PutUint64(b[:], x)
		h.Write(b[:])
	}
	for i, t := range targets {
		add(uint64(uint32(t)))
		if o.Weights != nil {
			add(math.Float64bits(o.Weights[i]))
		}
	}
	for _, x := range []float64{o.Divisor, o.Smoothing, o.Z, float64(o.Words), o.chunked[0], o.chunked[1], o.chunked[2]} {
		add(math.Float64bits(x))
	}
	return float64(h.Sum32())
}

// reduce combines x over the ranks.
func (g *Group) reduce(ctx context.Context, x []float64, op ccl.Op) error {
	defer g.count(time.Now(), 8*len(x))
	if err := ccl.AllReduce(ctx, g.Comm, x, x, op); err != nil {
		return fmt.Errorf("tp: CrossEntropy: %w", err)
	}
	return nil
}
