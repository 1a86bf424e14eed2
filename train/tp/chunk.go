package tp

import (
	"context"
	"fmt"
)

// Head is the last layer of a model as ChunkedCrossEntropy calls it.
type Head[T ~float32 | ~float64] struct {
	// Width is how many logits of a row this rank has, and Chunk how many rows are computed at once.
	Width, Chunk int
	// Logits sets logits, rows of Width whose numbers are arbitrary before, to those of the rows from lo to hi.
	Logits func(lo, hi int, logits []T) error
	// Grad adds what comes of dlogits, the gradient of the same rows, to the gradients of the layer and of
	// its input. Nil: the loss alone is wanted.
	Grad func(lo, hi int, dlogits []T) error
}

// ChunkedCrossEntropy is RowsCrossEntropy of logits that are never all in memory: it computes those of Head.Chunk rows,
// their loss, and what comes of their gradient, before those of the next rows. The losses and all dlogits have the same
// bits as those of one call; gradients that Grad sums over rows are summed chunk by chunk. It holds Chunk*Width
// numbers, and makes two all-reduces a chunk.
//
// All ranks of g have the same number of rows, and the same Chunk. An error of Logits or Grad fails the Comm, so that
// all ranks have an error with that reason: one that is done with the last chunk has it in its next call on the Comm.
func ChunkedCrossEntropy[T ~float32 | ~float64](ctx context.Context, g *Group, h Head[T], targets []int32, first int,
	o LossOptions) (loss float64, err error) {
	if err := g.usable("CrossEntropy"); err != nil {
		return 0, err
	}
	rows := len(targets)
	switch {
	case h.Width < 0 || h.Chunk < 1 || h.Logits == nil:
		return 0, g.refuse(fmt.Errorf("tp: ChunkedCrossEntropy: a Head %d wide, a Chunk of %d, Logits %t", h.Width, h.Chunk,
			h.Logits != nil))
	case o.Weights != nil && len(o.Weights) != rows || o.Losses != nil && len(o.Losses) != rows:
		return 0, g.refuse(fmt.Errorf("tp: ChunkedCrossEntropy: %d weights and %d losses for %d targets", len(o.Weights),
			len(o.Losses), rows))
	}
	o.chunked = [3]float64{float64(rows), float64(h.Chunk), o.count(targets)}
	logits, all := make([]T, min(h.Chunk, rows)*h.Width), o
	for lo := 0; lo == 0 || lo < rows; lo += h.Chunk {
		hi := min(lo+h.Chunk, rows)
		cut := func(x []float64) []float64 { return x[min(lo, len(x)):min(hi, len(x))] } // nil stays
		o.Weights, o.Losses = cut(all.Weights), cut(all.Losses)
		part := logits[:(hi-lo)*h.Width]
		if lo < hi {
			err = h.Logits(lo, hi, part)
		}
		if err == nil {
			if loss, err = crossEntropy(ctx, g, part, part, targets[lo:hi], first, o, loss); err != nil {
				return 0, err
			}
			if lo < hi && h.Grad != nil {
				err = h.Grad(lo, hi, part)
			}
		}
		if err != nil {
			return 0, g.refuse(fmt.Errorf("tp: ChunkedCrossEntropy: rows %d to %d: %w", lo, hi, err))
		}
	}
	return loss, nil
}
