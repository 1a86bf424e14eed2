// Package whole has the optimizers whose step on a parameter depends on the whole tensor: LAMB,
// Adafactor and Muon. They are for the pieces of which package zero makes shards, as those of
// package optim are, where a piece is a whole tensor:
//
//	err := m.Step(ctx, func(p zero.Piece, w, g []float32) error {
//		t := whole.Tensor{Name: names[p.Unit][p.Param], Rows: rows, Cols: cols, Lo: p.Lo, Hi: p.Hi}
//		return whole.ApplyMuon(h, t, w, g, mom[p.Unit][p.At:p.At+len(w)], &work)
//	})
//
// A piece that is a part of its tensor is an error that names it. Pieces are whole with package ddp
// and at zero's stage 0; at the other stages where a unit has one tensor, or several of one size,
// for each rank: for N ranks, let a unit have the same matrix of N layers. A size that 16 divides
// needs no padding between them. Then the bits are those of stage 0, on any number of ranks that
// keeps tensors whole.
//
// Muon is for the matrices between layers; embeddings, heads and vectors take AdamW. Sums go in one
// order, in float64, and no multiplication is fused with an addition, so the bits are the same on
// every machine. Nothing is allocated but a Workspace, once.
package whole

import (
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/train/optim"
)

// Tensor says what a slice is of a parameter. A vector has one row or one column.
type Tensor struct {
	// Name is for errors.
	Name string
	// Rows and Cols are the shape of all of it, row by row. Of more dimensions, make the first one Rows. A tensor without
	// elements, such as the part of an expert that a rank does not have, is as it was after a step.
	Rows, Cols int
	// Lo and Hi are the elements that the slice has, as zero.Piece has them; both 0: all.
	Lo, Hi int
}

// vector reports whether t is one.
func (t Tensor) vector() bool { return t.Rows == 1 || t.Cols == 1 }

// check says why a step of what cannot be made on slices of these lengths. why is for a piece that
// is not the whole tensor.
func (t Tensor) check(what, why string, lens ...int) error {
	n := t.Rows * t.Cols
	switch {
	case t.Rows < 0 || t.Cols < 0 || t.Cols > 0 && n/t.Cols != t.Rows:
		return fmt.Errorf("optim/whole: tensor %q is %d x %d", t.Name, t.Rows, t.Cols)
	case (t.Lo != 0 || t.Hi != 0) && (t.Lo != 0 || t.Hi != n):
		return fmt.Errorf("optim/whole: %s needs all of %q, %d x %d, because %s, and this shard has elements %d to %d of %d: "+
			"give each rank whole tensors of a unit, or use stage 0", what, t.Name, t.Rows, t.Cols, why, t.Lo, t.Hi, n)
	}
	for _, l := range lens {
		if l != n {
			return fmt.Errorf("optim/whole: %s of %q, %d x %d: it has %d elements, but the slices of parameters, gradients and state have %d",
				what, t.Name, t.Rows, t.Cols, n, slices.Clone(lens)) // else lens would be allocated in each step
		}
	}
	return nil
}

// or is x, or what 0 stands for; optim.Zero is 0.
func or(x, usual float64) float64 {
	switch x {
	case 0:
		return usual
	case optim.Zero:
		return 0
	}
	return x
}

// squares is the sum of the squares of x.
func squares[T optim.Float](x []T) (sum float64) {
	for _, e := range x {
		sum += float64(float64(e) * float64(e))
	}
	return sum
}

// rms is the root of the mean square of n elements that have this sum of squares.
func rms(sum float64, n int) float64 { return math.Sqrt(sum / float64(n)) }
