package tp

import (
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
)

// Layout is how a row-major matrix is split over ranks, as DTensor's Shard(1) and Shard(0).
type Layout struct {
	// Rows and Cols are those of the whole matrix.
	Rows, Cols int
	// Blocks is the number of matrices that lie side by side and are split alike: 3 for fused query, key and value, each
	// of whose heads a rank gets. Default 1. They lie side by side in the split dimension.
	Blocks int
	// ByRows splits rows, for the second layer of a pair. Else columns are split, for the first.
	ByRows bool
}

func (l Layout) blocks() int { return max(l.Blocks, 1) }

// cut is the split dimension as a stack: there are outer copies of blocks of size elements runs, each cut into ranks.
func (l Layout) cut() (outer, split, inner int) {
	if l.ByRows {
		return l.blocks(), l.Rows / l.blocks(), l.Cols
	}
	return l.Rows * l.blocks(), l.Cols / l.blocks(), 1
}

// Check says why the matrix cannot be split over size ranks.
func (l Layout) Check(size int) error {
	what, n := "columns", l.Cols
	if l.ByRows {
		what, n = "rows", l.Rows
	}
	switch {
	case l.Rows < 0 || l.Cols < 0 || l.Rows > 0 && l.Cols > math.MaxInt/l.Rows:
		return fmt.Errorf("tp: a matrix of %d x %d", l.Rows, l.Cols)
	case l.Blocks < 0:
		return fmt.Errorf("tp: a matrix in %d blocks", l.Blocks)
	case size < 1:
		return fmt.Errorf("tp: a matrix over %d ranks", size)
	case n%l.blocks() != 0 || n/l.blocks()%size != 0:
		return fmt.Errorf("tp: %d %s in blocks of equal size, %d, do not divide among %d ranks", n, what, l.blocks(), size)
	}
	return nil
}

func (l Layout) check(rank, size int) error {
	if err := l.Check(size); err != nil {
		return err
	}
	if rank < 0 || rank >= size {
		return fmt.Errorf("tp: rank %d of %d", rank, size)
	}
	return nil
}

// Shard returns a rank's part of w, a copy.
func Shard[T ccl.Number](l Layout, w []T, rank, size int) ([]T, error) {
	if err := l.check(rank, size); err != nil {
		return nil, err
	}
	if len(w) != l.Rows*l.Cols {
		return nil, fmt.Errorf("tp: %d elements for a matrix of %d x %d", len(w), l.Rows, l.Cols)
	}
	outer, split, inner := l.cut()
	run := split / size * inner
	out := make([]T, 0, outer*run)
	for i := range outer {
		at := i*split*inner + rank*run
		out = append(out, w[at:at+run]...)
	}
	return out, nil
}

// Unshard puts the parts of all ranks together.
func Unshard[T ccl.Number](l Layout, parts [][]T) ([]T, error) {
	size := len(parts)
	if err := l.Check(size); err != nil {
		return nil, err
	}
	outer, split, inner := l.cut()
	run := split / size * inner
	out := make([]T, l.Rows*l.Cols)
	for r, p := range parts {
		if len(p) != outer*run {
			return nil, fmt.Errorf("tp: the part of rank %d has %d elements, not %d", r, len(p), outer*run)
		}
		for i := range outer {
			copy(out[i*split*inner+r*run:], p[i*run:(i+1)*run])
		}
	}
	return out, nil
}

// Box is where a rank's part lies in the whole, as package ckpt wants it. With blocks the whole has three dimensions:
// [Rows][Blocks][Cols/Blocks], or [Blocks][Rows/Blocks][Cols] by rows; its elements lie where those of the matrix do.
func (l Layout) Box(rank, size int) (shape, offset, extent []int, err error) {
	if err := l.check(rank, size); err != nil {
		return nil, nil, nil, err
	}
	split := 1
	switch b := l.blocks(); {
	case b == 1 && l.ByRows:
		shape, split = []int{l.Rows, l.Cols}, 0
	case b == 1:
		shape = []int{l.Rows, l.Cols}
	case l.ByRows:
		shape = []int{b, l.Rows / b, l.Cols}
	default:
		shape, split = []int{l.Rows, b, l.Cols / b}, 2
	}
	offset, extent = make([]int, len(shape)), append([]int(nil), shape...)
	extent[split] /= size
	offset[split] = rank * extent[split]
	return shape, offset, extent, nil
}
