package sp

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Float is what blocks are made of.
type Float interface {
	~float32 | ~float64 | ccl.BFloat16
}

// Ring passes blocks around a Comm, as ring attention passes keys and values: the next one travels
// while the caller computes on this one. All ranks pass blocks of one length, or of those that
// NewRingOf is told, and go around together.
//
//	r := sp.NewRing(c, kv)
//	for r.Next(ctx) {
//		attend(q, r.Block(), r.From())
//	}
//	if err := r.Err(); err != nil { ... }
//
// In the backward pass each block has its gradient with it, to which every rank adds its part, and which ends at home:
//
//	r := sp.NewGradRing(c, kv, dkv)
//	for r.Next(ctx) {
//		r.Add(ctx, attendGrad(q, dout, r.Block(), r.From()))
//	}
//	err := r.Home(ctx) // dkv is complete
//
// A Ring uses two blocks of memory, of the longest, and a GradRing four. A gradient is summed in T:
// in bfloat16 it is rounded on each rank, so programs should have these blocks in float32.
type Ring[T Float] struct {
	c    *ccl.Comm
	q    ccl.Queue
	k    int // how many blocks have come before this one; -1 before Next
	cur  []T
	bufs [2][]T
	lens []int    // of the blocks, by rank
	next ccl.Work // the arrival of the block after this one
	err  error

	home  []T      // what the gradient of this rank's own block becomes; nil in the forward pass
	out   []T      // a gradient on its way to the next rank
	in    []T      // that of Block, as it arrives from the rank before
	added bool     // to the gradient of this block
	moved ccl.Work // the exchange of gradients
}

// NewRing returns a Ring that begins with this rank's own block, which it only reads.
func NewRing[T Float](c *ccl.Comm, own []T) *Ring[T] { return NewRingOf(c, own, equal(c, len(own))) }

// equal is lengths of blocks that are alike.
func equal(c *ccl.Comm, n int) []int { return slices.Repeat([]int{n}, c.Size()) }

// NewRingOf is NewRing for blocks of several lengths: lens[r] is that of rank r's, the same on all
// ranks, as where the tokens of a sequence do not divide. A block may be empty.
func NewRingOf[T Float](c *ccl.Comm, own []T, lens []int) *Ring[T] {
	r := &Ring[T]{c: c, k: -1, cur: own, lens: lens}
	switch {
	case c.Size() == 0:
		r.err = errNoComm
		return r
	case len(lens) != c.Size() || slices.Min(lens) < 0:
		r.err = fmt.Errorf("sp: blocks of %d elements for %d ranks", lens, c.Size())
	case lens[c.Rank()] != len(own):
		r.err = fmt.Errorf("sp: the block of rank %d has %d elements, and not the %d of lens", c.Rank(), len(own),
			lens[c.Rank()])
	}
	if r.err != nil {
		c.Abort(r.err) // others wait for this rank's blocks
		return r
	}
	most := slices.Max(lens)
	r.q, r.lens, r.bufs = c.On(nil), slices.Clone(lens), [2][]T{make([]T, most), make([]T, most)}
	return r
}

// NewGradRing is NewRing for the backward pass. Home leaves the gradient of own in grad, which is as long.
func NewGradRing[T Float](c *ccl.Comm, own, grad []T) *Ring[T] {
	return NewGradRingOf(c, own, grad, equal(c, len(own)))
}

// NewGradRingOf is NewRingOf for the backward pass.
func NewGradRingOf[T Float](c *ccl.Comm, own, grad []T, lens []int) *Ring[T] {
	r := NewRingOf(c, own, lens)
	r.home = grad
	switch {
	case r.err != nil:
	case len(grad) != len(own):
		r.err = fmt.Errorf("sp: a gradient of %d elements for a block of %d", len(grad), len(own))
		c.Abort(r.err)
	default:
		most := slices.Max(lens)
		r.out, r.in = make([]T, most), make([]T, most)
		if r.home == nil { // of an empty block
			r.home = []T{}
		}
	}
	return r
}

// Next moves on to the next block. It is true as many times as there are ranks, first for the own block.
func (r *Ring[T]) Next(ctx context.Context) bool {
	n := r.c.Size()
	if r.err != nil || r.k == n {
		return false
	}
	if r.k >= 0 && r.home != nil && !r.added {
		r.Add(ctx, nil)
		if r.err != nil {
			return false
		}
	}
	if r.k == n-1 {
		r.k = n
		return false
	}
	if r.k >= 0 {
		if err := r.next.Wait(ctx); err != nil {
			r.err = fmt.Errorf("sp: the block of rank %d: %w", (r.From()+n-1)%n, err)
			return false
		}
		r.cur = r.bufs[r.k%2][:r.coming()]
	}
	r.k++
	r.added = false
	if r.k < n-1 {
		r.next = r.q.SendRecv(ccl.BufOf(r.bufs[r.k%2][:r.coming()]), r.before(), ccl.BufOf(r.cur), r.after())
	}
	return true
}

// coming is the length of the block after this one.
func (r *Ring[T]) coming() int {
	n := r.c.Size()
	return r.lens[(r.From()+n-1)%n]
}

func (r *Ring[T]) after() int  { return (r.c.Rank() + 1) % r.c.Size() }
func (r *Ring[T]) before() int { return (r.c.Rank() + r.c.Size() - 1) % r.c.Size() }

// Block is the block at hand, valid until Next.
func (r *Ring[T]) Block() []T { return r.cur }

// From is the rank whose block it is.
func (r *Ring[T]) From() int {
	n := max(r.c.Size(), 1) // 0 where there is no Comm
	return (r.c.Rank() - max(r.k, 0) + n) % n
}

// Err is why Next was false before its time.
func (r *Ring[T]) Err() error { return r.err }

// Add adds g to the gradient of Block, once for each block; where there is nothing to add, as behind a causal mask, it
// need not be called. It waits for the gradient as the rank before leaves it, and sends it on. Errors come from Home.
func (r *Ring[T]) Add(ctx context.Context, g []T) {
	switch {
	case r.err != nil:
		return
	case r.home == nil:
		r.err = fmt.Errorf("sp: Add to a Ring without gradients; NewGradRing makes one with")
	case r.k < 0 || r.k >= r.c.Size() || r.added:
		r.err = fmt.Errorf("sp: call Add once after each Next")
	case g != nil && len(g) != len(r.cur):
		r.err = fmt.Errorf("sp: Add: a gradient of %d elements for a block of %d", len(g), len(r.cur))
	}
	if r.err != nil {
		r.c.Abort(r.err) // others wait for this gradient
		return
	}
	r.added = true
	if r.k == 0 {
		r.out = r.out[:len(r.cur)]
		clear(r.out)
	} else {
		if err := r.moved.Wait(ctx); err != nil {
			r.err = fmt.Errorf("sp: the gradient of rank %d's block: %w", r.From(), err)
			return
		}
		r.in, r.out = r.out, r.in
	}
	if g != nil {
		reduce.Add(op.Type(ccl.TypeOf[T]()), r.out, g)
	}
	// The block before this one's in the ring is at hand next; after the last, it is the own one's gradient that comes.
	r.in = r.in[:r.coming()]
	r.moved = r.q.SendRecv(ccl.BufOf(r.in), r.before(), ccl.BufOf(r.out), r.after())
}

// Home waits until the gradient of this rank's own block has come home, after the last Next, and
// leaves it where NewGradRing was told.
func (r *Ring[T]) Home(ctx context.Context) error {
	switch {
	case r.err != nil:
		return r.err
	case r.home == nil:
		return fmt.Errorf("sp: Home of a Ring without gradients; NewGradRing makes one with")
	case r.k < r.c.Size():
		return fmt.Errorf("sp: call Home after Next has returned false")
	}
	if err := r.moved.Wait(ctx); err != nil {
		r.err = fmt.Errorf("sp: the gradient of this rank's own block: %w", err)
		return r.err
	}
	copy(r.home, r.in)
	return nil
}
