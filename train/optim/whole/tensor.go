// Package whole has the optimizers whose step on a parameter depends on the whole tensor: LAMB,
// Adafactor and Muon. An [Optimizer] makes steps on all tensors of a model of package zero, at any
// stage, although the shards cut them:
//
//	o, err := whole.New(ctx, c, m, tensors, func(unit, param int) whole.Rule { return groups.Of(unit, param) })
//	...
//	err = o.Step(ctx, step) // in place of m.Step
//
// In a step LAMB sums two numbers a tensor over the ranks, in float64, and Adafactor two, and one for
// each row and column. Under Muon one rank gets all parts of a matrix, and sends back theirs of the
// orthogonal one: each rank has room for its parts and for the matrices that come to it. The results
// are those of one rank but for the last bits of sums over several ranks.
//
// The functions make a step on one tensor that is all there, as with package ddp. Muon is for the
// matrices between layers; embeddings, heads and vectors take AdamW. Sums go in one order, in
// float64, and no multiplication is fused with an addition, so the bits are the same on every
// machine. Nothing is allocated in a function but a Workspace, once.
package whole

import (
	"fmt"
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

// column is t, or, of a vector, one column.
func (t Tensor) column() Tensor {
	if t.Rows == 1 {
		t.Rows, t.Cols = t.Cols, 1
	}
	return t
}

// wrong reports whether t has no shape that there is.
func (t Tensor) wrong() bool {
	return t.Rows < 0 || t.Cols < 0 || t.Cols > 0 && t.Rows*t.Cols/t.Cols != t.Rows
}

// check says why a step of what cannot be made on slices of these lengths.
func (t Tensor) check(what string, lens ...int) error {
	n := t.Rows * t.Cols
	switch {
	case t.wrong():
		return fmt.Errorf("optim/whole: tensor %q is %d x %d", t.Name, t.Rows, t.Cols)
	case (t.Lo != 0 || t.Hi != 0) && (t.Lo != 0 || t.Hi != n):
		return fmt.Errorf("optim/whole: %s takes all of %q, %d x %d, and this shard has elements %d to %d of %d: an Optimizer takes parts", what, t.Name, t.Rows, t.Cols, t.Lo, t.Hi, n)
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

// marginal is the sum of the squares of g, a part of t, in row k, or, after all rows, in column k-Rows.
func marginal[T optim.Float](t Tensor, k int, g []T) (sum float64) {
	if k < t.Rows {
		if lo, hi := max(k*t.Cols, t.Lo), min((k+1)*t.Cols, t.Hi); lo < hi {
			sum = squares(g[lo-t.Lo : hi-t.Lo])
		}
		return sum
	}
	first := k - t.Rows - t.Lo%t.Cols // in g
	if first < 0 {
		first += t.Cols
	}
	for i := first; i < len(g); i += t.Cols {
		sum += float64(float64(g[i]) * float64(g[i]))
	}
	return sum
}

// squares is the sum of the squares of x.
func squares[T optim.Float](x []T) (sum float64) {
	for _, e := range x {
		sum += float64(float64(e) * float64(e))
	}
	return sum
}
