package tp

import (
	"errors"
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
	// Parts is in the place of Blocks where the matrices that lie side by side differ: their sizes in
	// the split dimension. With fewer heads of keys and values than of queries (GQA) they are those of
	// query, key and value.
	Parts []int
	// Unit is what is not cut, in the split dimension: the size of a head. Default 1.
	Unit int
	// Pad gives all ranks equal parts where they do not divide: the last parts end in zeros, which are
	// no part of the whole matrix. It is for a vocabulary, such as the 50,257 words of GPT-2;
	// LossOptions.Words leaves them out of the loss. Only one matrix can be padded.
	Pad bool
	// Replicate gives a unit to several ranks where a matrix has fewer units than there are ranks, as
	// many to each unit: with two heads of keys on 8 ranks each has one, and 4 ranks have the same.
	// Without it that is an error. SumReplicas adds up the gradients of what several ranks have.
	Replicate bool
	// ByRows splits rows, for the second layer of a pair. Else columns are split, for the first.
	ByRows bool
}

func (l Layout) blocks() int { return max(l.Blocks, 1) }
func (l Layout) unit() int   { return max(l.Unit, 1) }

// split is the length of the split dimension; inner is how many elements each of it is a run of,
// and outer how many times the runs lie one after another.
func (l Layout) split() (split, inner, outer int) {
	if l.ByRows {
		return l.Rows, l.Cols, 1
	}
	return l.Cols, 1, l.Rows
}

// matrices is how many lie side by side.
func (l Layout) matrices() int {
	if l.Parts != nil {
		return len(l.Parts)
	}
	return l.blocks()
}

// sizeOf is the length of one of them in the split dimension.
func (l Layout) sizeOf(i int) int {
	if l.Parts != nil {
		return l.Parts[i]
	}
	n, _, _ := l.split()
	return n / l.blocks()
}

// share is what each of size ranks gets of a matrix of n, in the split dimension.
func (l Layout) share(n, size int) int {
	units := (n + l.unit() - 1) / l.unit()
	return (units + size - 1) / size * l.unit()
}

// replicas is how many of size ranks have the same part of a matrix of n.
func (l Layout) replicas(n, size int) int {
	if units := n / l.unit(); l.Replicate && units > 0 && units < size {
		return size / units
	}
	return 1
}

// Replicas is how many of size ranks have each unit of what is replicated, and 1 if nothing is.
// Ranks r and s have the same units if r/Replicas and s/Replicas are equal. It is 0 where Check has
// an error.
func (l Layout) Replicas(size int) int {
	if l.Check(size) != nil {
		return 0
	}
	k := 1
	for i := range l.kinds() {
		k = max(k, l.replicas(l.sizeOf(i), size))
	}
	return k
}

// kinds is how many of the matrices may differ from each other.
func (l Layout) kinds() int { return max(1, len(l.Parts)) }

// Share is what each of size ranks has in the split dimension, padding included: rank r's part of a
// vocabulary begins with entry r*Share. It is 0 where Check has an error.
func (l Layout) Share(size int) int {
	if l.Check(size) != nil {
		return 0
	}
	if l.Parts == nil {
		return l.blocks() * l.share(l.sizeOf(0), size)
	}
	sum := 0
	for _, n := range l.Parts {
		sum += l.share(n, size)
	}
	return sum
}

// Check says why the matrix cannot be split over size ranks.
func (l Layout) Check(size int) error {
	what := "columns"
	if l.ByRows {
		what = "rows"
	}
	n, _, _ := l.split()
	switch {
	case l.Rows < 0 || l.Cols < 0 || l.Rows > 0 && l.Cols > math.MaxInt/l.Rows:
		return fmt.Errorf("tp: a matrix of %d x %d", l.Rows, l.Cols)
	case l.Blocks < 0:
		return fmt.Errorf("tp: a matrix in %d blocks", l.Blocks)
	case l.Unit < 0:
		return fmt.Errorf("tp: a matrix in units of %d %s", l.Unit, what)
	case l.Blocks > 1 && l.Parts != nil:
		return fmt.Errorf("tp: a matrix in %d blocks and in parts of %d %s; give one of them", l.Blocks, l.Parts, what)
	case size < 1:
		return fmt.Errorf("tp: a matrix over %d ranks", size)
	case l.Pad && l.Replicate:
		return errors.New("tp: a matrix cannot be both padded and replicated")
	case l.Pad && (l.Blocks > 1 || len(l.Parts) > 1):
		return errors.New("tp: matrices that lie side by side cannot be padded")
	case l.Pad && (n > math.MaxInt/2 || l.unit() > math.MaxInt/2/size):
		return fmt.Errorf("tp: %d %s padded to units of %d on %d ranks", n, what, l.Unit, size)
	case l.Parts == nil && !l.Pad && !l.Replicate && l.Unit <= 1 && (n%l.blocks() != 0 || n/l.blocks()%size != 0):
		return fmt.Errorf("tp: %d %s in blocks of equal size, %d, do not divide among %d ranks", n, what, l.blocks(), size)
	case l.Parts == nil && n%l.blocks() != 0:
		return fmt.Errorf("tp: %d %s are not %d blocks of equal size", n, what, l.blocks())
	case l.Parts != nil && len(l.Parts) == 0:
		return errors.New("tp: a matrix in no parts")
	}
	left := n
	for _, p := range l.Parts {
		if p < 0 || p > left {
			left = -1
			break
		}
		left -= p
	}
	if l.Parts != nil && left != 0 {
		return fmt.Errorf("tp: parts of %d %s are not the %d of the matrix", l.Parts, what, n)
	}
	uneven := func(p int) bool {
		return !l.Pad && (p%l.unit() != 0 || p/l.unit()*l.replicas(p, size)%size != 0)
	}
	if p := n / l.blocks(); l.Parts == nil && uneven(p) {
		return fmt.Errorf("tp: %d %s in units of %d do not divide among %d ranks", p, what, l.unit(), size)
	}
	for i, p := range l.Parts {
		if uneven(p) {
			return fmt.Errorf("tp: the %d %s of part %d, in units of %d, do not divide among %d ranks", p, what, i, l.unit(),
				size)
		}
	}
	before := 1
	for i := range l.kinds() {
		k := l.replicas(l.sizeOf(i), size)
		if k > 1 && before > 1 && k != before {
			return fmt.Errorf("tp: parts of %d %s, in units of %d, of which some would be on %d ranks each and others on %d; give each a Layout of its own",
				l.Parts, what, l.unit(), before, k)
		}
		before = max(before, k)
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

// length is that of a rank's part.
func (l Layout) length(size int) int {
	_, inner, outer := l.split()
	return l.Share(size) * inner * outer
}

// stretches tells f of the n elements that are contiguous in the whole matrix and in a rank's part,
// from whole and from part on. Between and after them the part has padding.
func (l Layout) stretches(rank, size int, f func(whole, part, n int)) {
	split, inner, outer := l.split()
	part := 0
	for o := range outer {
		at := o * split * inner
		for i := range l.matrices() {
			n := l.sizeOf(i)
			k := l.share(n, size)
			lo := min(rank/l.replicas(n, size)*k, n)
			hi := min(lo+k, n)
			f(at+lo*inner, part, (hi-lo)*inner)
			at, part = at+n*inner, part+k*inner
		}
	}
}

// Shard returns a rank's part of w, a copy.
func Shard[T ccl.Number](l Layout, w []T, rank, size int) ([]T, error) {
	if err := l.check(rank, size); err != nil {
		return nil, err
	}
	if len(w) != l.Rows*l.Cols {
		return nil, fmt.Errorf("tp: %d elements for a matrix of %d x %d", len(w), l.Rows, l.Cols)
	}
	out := make([]T, l.length(size))
	l.stretches(rank, size, func(whole, part, n int) { copy(out[part:], w[whole:whole+n]) })
	return out, nil
}

// Unshard puts the parts of all ranks together, without padding. What several ranks have must be alike.
func Unshard[T ccl.Number](l Layout, parts [][]T) ([]T, error) {
	size := len(parts)
	if err := l.Check(size); err != nil {
		return nil, err
	}
	for r, p := range parts {
		if n := l.length(size); len(p) != n {
			return nil, fmt.Errorf("tp: the part of rank %d has %d elements, not %d", r, len(p), n)
		}
	}
	out := make([]T, l.Rows*l.Cols)
	for r, p := range parts {
		l.stretches(r, size, func(whole, part, n int) { copy(out[whole:], p[part:part+n]) })
	}
	return out, nil
}

// Box is where a rank's part lies in the whole, as package ckpt wants it. With blocks the whole has
// three dimensions: [Rows][Blocks][Cols/Blocks], or [Blocks][Rows/Blocks][Cols] by rows; its
// elements lie where those of the matrix do. A part that is padded, or has Parts, is no such box:
// Boxes has those.
func (l Layout) Box(rank, size int) (shape, offset, extent []int, err error) {
	switch err := l.check(rank, size); {
	case err != nil:
		return nil, nil, nil, err
	case l.Parts != nil || l.Pad:
		return nil, nil, nil, errors.New("tp: a part that is padded, or has parts of several sizes, is not one box; use Boxes")
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
	extent[split] = l.share(l.sizeOf(0), size)
	offset[split] = rank / l.replicas(l.sizeOf(0), size) * extent[split]
	return shape, offset, extent, nil
}

// Box is a box of a whole matrix of two dimensions, whose elements are those from Lo to Hi of a rank's part.
type Box struct {
	Offset, Size []int
	Lo, Hi       int
}

// Boxes are where a rank's part of a matrix that is split by rows lies in the whole: one box for
// each of the matrices that lie side by side, without padding. A Tensor of package ckpt takes each
// of them, with the shape [Rows][Cols] and that much of the part, so that what is saved has neither
// the number of ranks nor padding in it. Several ranks have the boxes of what is replicated; ckpt
// writes them once.
func (l Layout) Boxes(rank, size int) ([]Box, error) {
	if err := l.check(rank, size); err != nil {
		return nil, err
	}
	if !l.ByRows {
		return nil, errors.New("tp: Boxes are for a matrix that is split by rows: of one that is split by columns they would be rows of a few elements")
	}
	var boxes []Box
	l.stretches(rank, size, func(whole, part, n int) {
		b := Box{[]int{0, 0}, []int{0, l.Cols}, part, part + n}
		if l.Cols > 0 {
			b.Offset[0], b.Size[0] = whole/l.Cols, n/l.Cols
		}
		boxes = append(boxes, b)
	})
	return boxes, nil
}
