// Package sp moves the blocks of attention over a sequence that is split among ranks, in two ways: DeepSpeed Ulysses
// (Jacobs et al. 2023) and ring attention (Liu et al. 2023), which Megatron calls context parallelism.
//
// With Ulysses each rank computes whole attention for a part of the heads. [ToHeads] and
// [ToSequence] are one AllToAll each, of Seq/P*Heads*Dim elements a rank; the heads must divide
// among the P ranks. With a [Ring] each rank computes all heads for its part of the queries, while
// keys and values go around: P-1 messages of one block a rank, hidden behind the computation, and P
// more of a gradient in the backward pass. There are no other connections, and no limit to P.
//
// Both together are unified sequence parallelism (USP, Fang and Zhao 2024), on a mesh with two
// dimensions: Ulysses inside a host, among as many ranks as there are heads of keys at most, and a
// ring across. [Volume] counts what a rank sends. The sequence is cut for the ring first, and each
// of these parts for Ulysses:
//
//	err := sp.ToHeads(ctx, inner, part, q, mine, scratch)   // and k, v: the ring's part, of some heads
//	r := sp.NewRing(outer, kv)                              // as below, on these heads
//	err = sp.ToSequence(ctx, inner, part, mine, out, scratch)
//
// Lengths need not divide: [Part] says which tokens a rank has, and [NewRingOf] takes blocks of several lengths.
//
// A shape is that of one sequence; a program with a batch makes its calls for each, or has the batch in Dim's place.
package sp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/data"
)

// Shape is that of a whole sequence of activations, row-major: [Seq][Heads][Dim]. For Ulysses, Heads must divide by the
// number of ranks. Where Seq does not, ranks have the tokens that Part says.
type Shape struct{ Seq, Heads, Dim int }

var errNoComm = errors.New("sp: the Comm is nil")

// check fails c if a call cannot be made: the other ranks may have begun theirs.
func check[T ccl.Number](c *ccl.Comm, s Shape, dst, src, scratch []T, toHeads bool) error {
	err := s.fit(c.Rank(), c.Size(), len(dst), len(src), len(scratch), toHeads)
	if err == nil && (overlap(scratch, src) || overlap(scratch, dst)) {
		err = errors.New("sp: scratch overlaps dst or src")
	}
	if err != nil {
		c.Abort(err)
	}
	return err
}

// overlap reports whether a and b have elements in common.
func overlap[T ccl.Number](a, b []T) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	bytes := uintptr(len(a)) * unsafe.Sizeof(a[0])
	other := uintptr(len(b)) * unsafe.Sizeof(a[0])
	x, y := uintptr(unsafe.Pointer(&a[0])), uintptr(unsafe.Pointer(&b[0]))
	return x < y+other && y < x+bytes
}

func (s Shape) fit(rank, p, dst, src, scratch int, toHeads bool) error {
	switch {
	case p == 0:
		return errNoComm
	case s.Seq < 0 || s.Heads < 0 || s.Dim < 0:
		return fmt.Errorf("sp: a shape of %d tokens, %d heads and %d elements", s.Seq, s.Heads, s.Dim)
	case s.Heads%p != 0:
		return fmt.Errorf("sp: %d heads do not divide among %d ranks; use a Ring, which does not split heads", s.Heads, p)
	}
	lo, hi := Part(s.Seq, rank, p)
	tokens, heads := (hi-lo)*s.Heads*s.Dim, s.Seq*(s.Heads/p)*s.Dim
	wantDst, wantSrc := heads, tokens
	if !toHeads {
		wantDst, wantSrc = tokens, heads
	}
	switch {
	case dst == wantDst && src == wantSrc && scratch == tokens:
		return nil
	case heads == tokens:
		return fmt.Errorf("sp: dst has %d elements, src %d and scratch %d; the part of a rank of %d has %d", dst, src,
			scratch, p, tokens)
	}
	return fmt.Errorf("sp: dst has %d elements, src %d and scratch %d; rank %d of %d has %d of its tokens, as scratch does, and %d of its heads",
		dst, src, scratch, rank, p, tokens, heads)
}

// Part is which tokens [lo, hi) of a sequence a rank has, as data.Range says it: parts differ by one token at most.
func Part(seq, rank, size int) (lo, hi int) { return data.Range(seq, rank, size) }

// exchange sends src and fills dst. In ToHeads, where tokens do not divide, this rank sends its
// tokens of each rank's heads, and gets each rank's tokens of its heads; in ToSequence it is the
// other way round.
func exchange[T ccl.Number](ctx context.Context, c *ccl.Comm, s Shape, dst, src []T, toHeads bool) error {
	p := c.Size()
	if s.Seq%p == 0 {
		return ccl.AllToAll(ctx, c, dst, src)
	}
	k := s.Heads / p * s.Dim
	lo, hi := Part(s.Seq, c.Rank(), p)
	var sent, got []int
	for r := range p {
		from, to := Part(s.Seq, r, p)
		sent, got = append(sent, (hi-lo)*k), append(got, (to-from)*k)
	}
	if !toHeads {
		sent, got = got, sent
	}
	return ccl.AllToAllV(ctx, c, dst, got, src, sent)
}

// ToHeads turns a rank's part of the sequence, src [Seq/P][Heads][Dim], into the whole sequence of
// its part of the heads, dst [Seq][Heads/P][Dim], as Ulysses does before attention. scratch is as
// long as src and overlaps neither. What does not fit on any rank fails c on all of them.
func ToHeads[T ccl.Number](ctx context.Context, c *ccl.Comm, s Shape, dst, src, scratch []T) error {
	if err := check(c, s, dst, src, scratch, true); err != nil {
		return err
	}
	p := c.Size()
	k := s.Heads / p * s.Dim // of one token, what goes to one rank
	lo, hi := Part(s.Seq, c.Rank(), p)
	at := 0
	for r := range p {
		for i := range hi - lo {
			at += copy(scratch[at:at+k], src[(i*p+r)*k:])
		}
	}
	if err := exchange(ctx, c, s, dst, scratch, true); err != nil {
		return fmt.Errorf("sp: ToHeads: %w", err)
	}
	return nil
}

// ToSequence is the inverse of ToHeads, and so its gradient: it turns src [Seq][Heads/P][Dim] into dst
// [Seq/P][Heads][Dim], as Ulysses does after attention. scratch is as long as dst.
func ToSequence[T ccl.Number](ctx context.Context, c *ccl.Comm, s Shape, dst, src, scratch []T) error {
	if err := check(c, s, dst, src, scratch, false); err != nil {
		return err
	}
	if err := exchange(ctx, c, s, scratch, src, false); err != nil {
		return fmt.Errorf("sp: ToSequence: %w", err)
	}
	p := c.Size()
	k := s.Heads / p * s.Dim
	lo, hi := Part(s.Seq, c.Rank(), p)
	at := 0
	for r := range p {
		for i := range hi - lo {
			at += copy(dst[(i*p+r)*k:(i*p+r+1)*k], scratch[at:])
		}
	}
	return nil
}

// Volume is how many elements a rank sends to others for one layer of attention of shape s with kv
// heads of keys and of values, with so many ranks in Ulysses and so many in a ring, where all
// divide. Forward, queries, keys and values go to the heads, keys and values go around, and the
// result comes back. Backward, all gradients take these ways, and keys and values go around again.
// The more ranks, the less each sends by Ulysses; in a ring each passes on almost all keys and
// values of its heads, however many ranks there are.
func Volume(s Shape, kv, ulysses, ring int) (forward, backward int) {
	if ulysses < 1 || ring < 1 {
		return 0, 0
	}
	each := s.Seq / (ulysses * ring) * s.Dim // of one head, what a rank has
	exchange := 2 * each * (s.Heads + kv) / ulysses * (ulysses - 1)
	block := 2 * each * kv // of keys and values
	around := block * (ring - 1)
	if forward, backward = exchange+around, exchange+around; ring > 1 {
		backward += block * ring // a gradient comes home
	}
	return forward, backward
}

// Zigzag is the two parts [lo, hi) of a sequence that a rank computes on so that a causal mask gives all ranks the same
// work: of 2*size parts, which differ by one token at most, part rank from the front and part rank from the back.
func Zigzag(seq, rank, size int) ([2][2]int, error) {
	if size < 1 || rank < 0 || rank >= size {
		return [2][2]int{}, fmt.Errorf("sp: Zigzag: rank %d of %d", rank, size)
	}
	if seq < 0 || size > math.MaxInt/2 {
		return [2][2]int{}, fmt.Errorf("sp: Zigzag: %d tokens on %d ranks", seq, size)
	}
	var z [2][2]int
	z[0][0], z[0][1] = Part(seq, rank, 2*size)
	z[1][0], z[1][1] = Part(seq, 2*size-1-rank, 2*size)
	return z, nil
}
