// Package sp moves the blocks of attention over a sequence that is split among ranks, in two ways: DeepSpeed Ulysses
// (Jacobs et al. 2023) and ring attention (Liu et al. 2023), which Megatron calls context parallelism.
//
// With Ulysses each rank computes whole attention for a part of the heads. [ToHeads] and [ToSequence] are one AllToAll
// each, of Seq/P*Heads*Dim elements a rank; the heads must divide among the P ranks. With a [Ring] each rank computes all
// heads for its part of the queries, while keys and values go around: P-1 messages of one block a rank, hidden behind the
// computation, and P more of a gradient in the backward pass. There are no other connections, and no limit to P.
//
// A shape is that of one sequence; a program with a batch makes its calls for each, or has the batch in Dim's place.
package sp

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// Shape is that of a whole sequence of activations, row-major: [Seq][Heads][Dim]. For Ulysses, Seq and Heads must divide
// by the number of ranks.
type Shape struct{ Seq, Heads, Dim int }

var errNoComm = errors.New("sp: the Comm is nil")

// check fails c if a call cannot be made: the other ranks may have begun theirs.
func check[T ccl.Number](c *ccl.Comm, s Shape, dst, src, scratch []T) error {
	err := s.fit(c.Size(), len(dst), len(src), len(scratch))
	if err == nil && (overlap(scratch, src) || overlap(scratch, dst)) {
		err = errors.New("sp: scratch overlaps dst or src")
	}
	if err != nil {
		c.Abort(err)
	}
	return err
}

// overlap reports whether a and b, of one length, have elements in common.
func overlap[T ccl.Number](a, b []T) bool {
	if len(a) == 0 {
		return false
	}
	bytes := uintptr(len(a)) * unsafe.Sizeof(a[0])
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x < y+bytes && y < x+bytes
}

func (s Shape) fit(p, dst, src, scratch int) error {
	switch {
	case p == 0:
		return errNoComm
	case s.Seq < 0 || s.Heads < 0 || s.Dim < 0:
		return fmt.Errorf("sp: a shape of %d tokens, %d heads and %d elements", s.Seq, s.Heads, s.Dim)
	case s.Seq%p != 0:
		return fmt.Errorf("sp: %d tokens do not divide among %d ranks", s.Seq, p)
	case s.Heads%p != 0:
		return fmt.Errorf("sp: %d heads do not divide among %d ranks; use a Ring, which does not split heads", s.Heads, p)
	}
	if n := s.Seq / p * s.Heads * s.Dim; dst != n || src != n || scratch != n {
		return fmt.Errorf("sp: dst has %d elements, src %d and scratch %d; the part of a rank of %d has %d", dst, src, scratch, p, n)
	}
	return nil
}

// ToHeads turns a rank's part of the sequence, src [Seq/P][Heads][Dim], into the whole sequence of its part of the
// heads, dst [Seq][Heads/P][Dim], as Ulysses does before attention. scratch is as long as src and overlaps neither. What
// does not fit on any rank fails c on all of them.
func ToHeads[T ccl.Number](ctx context.Context, c *ccl.Comm, s Shape, dst, src, scratch []T) error {
	if err := check(c, s, dst, src, scratch); err != nil {
		return err
	}
	p := c.Size()
	k := s.Heads / p * s.Dim // of one token, what goes to one rank
	at := 0
	for r := range p {
		for i := range s.Seq / p {
			at += copy(scratch[at:at+k], src[(i*p+r)*k:])
		}
	}
	if err := ccl.AllToAll(ctx, c, dst, scratch); err != nil {
		return fmt.Errorf("sp: ToHeads: %w", err)
	}
	return nil
}

// ToSequence is the inverse of ToHeads, and so its gradient: it turns src [Seq][Heads/P][Dim] into dst
// [Seq/P][Heads][Dim], as Ulysses does after attention.
func ToSequence[T ccl.Number](ctx context.Context, c *ccl.Comm, s Shape, dst, src, scratch []T) error {
	if err := check(c, s, dst, src, scratch); err != nil {
		return err
	}
	if err := ccl.AllToAll(ctx, c, scratch, src); err != nil {
		return fmt.Errorf("sp: ToSequence: %w", err)
	}
	p := c.Size()
	k := s.Heads / p * s.Dim
	at := 0
	for r := range p {
		for i := range s.Seq / p {
			at += copy(dst[(i*p+r)*k:(i*p+r+1)*k], scratch[at:])
		}
	}
	return nil
}

// Zigzag is the two parts [lo, hi) of a sequence that a rank computes on so that a causal mask gives all ranks the same
// work: of 2*size equal parts, part rank from the front and part rank from the back.
func Zigzag(seq, rank, size int) ([2][2]int, error) {
	if size < 1 || rank < 0 || rank >= size {
		return [2][2]int{}, fmt.Errorf("sp: Zigzag: rank %d of %d", rank, size)
	}
	if seq < 0 || seq%(2*size) != 0 {
		return [2][2]int{}, fmt.Errorf("sp: Zigzag: %d tokens do not divide into %d parts, two for each of %d ranks", seq, 2*size, size)
	}
	k := seq / (2 * size)
	back := 2*size - 1 - rank
	return [2][2]int{{rank * k, (rank + 1) * k}, {back * k, (back + 1) * k}}, nil
}
