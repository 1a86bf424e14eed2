// Package powersgd averages gradients by two thin factors of each matrix (PowerSGD, Vogels et al. 2019),
// as torch's powerSGD_hook: of n x m numbers Rank*(n+m) are sent. What a step leaves out each rank adds
// to its next one.
//
//	c, err := powersgd.New(powersgd.Options{Matrices: matrices, Rank: 2, Start: 1000})
//	r, err := ddp.New(ctx, comm, grads, &ddp.Options{Hook: c.Hook})
package powersgd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
)

// Matrix is a gradient that has rows and columns, row by row.
type Matrix struct {
	Grad       []float32
	Rows, Cols int
}

// Options are the same on all ranks, but for the memory of Matrices.
type Options struct {
	// Matrices are gradients of the Reducer to be averaged by factors; all others are averaged as they are. One that is
	// no gradient is an error of the second step.
	Matrices []Matrix
	// Rank is how many columns the factors have; 0 is 1.
	Rank int
	// Rate is by how much a matrix must shrink to be worth it: rows*cols > Rate*Rank*(rows+cols); 0 is 2, as in torch.
	Rate float64
	// Start is how many steps are averaged as they are at first; torch takes 1000.
	Start int
	// Seed is that of the first factors.
	Seed uint64
}

// Compressor is a ddp.Hook and what it keeps. Its state are Step and Errors, for checkpoints: a rank
// that comes later sets Step to that of the others, and begins with errors of 0.
type Compressor struct {
	// Step is how many steps have begun.
	Step int

	o      Options
	errors [][]float32 // of each matrix: what the last step has left out
	found  []bool      // which matrices are gradients of the Reducer
	whole  bool        // a step has begun: in the next all of them have been looked for
}

// New returns a Compressor.
func New(o Options) (*Compressor, error) {
	if o.Rank == 0 {
		o.Rank = 1
	}
	if o.Rate == 0 {
		o.Rate = 2
	}
	if o.Rank < 0 || !(o.Rate > 0) || o.Start < 0 {
		return nil, fmt.Errorf("powersgd: Rank is %d, Rate %v, Start %d: none is negative", o.Rank, o.Rate, o.Start)
	}
	c := &Compressor{o: o, errors: make([][]float32, len(o.Matrices)), found: make([]bool, len(o.Matrices))}
	for i, m := range o.Matrices {
		if m.Rows < 1 || m.Cols < 1 || m.Rows > math.MaxInt/m.Cols || len(m.Grad) != m.Rows*m.Cols {
			return nil, fmt.Errorf("powersgd: matrix %d has %d numbers, and is %d x %d", i, len(m.Grad), m.Rows, m.Cols)
		}
		c.errors[i] = make([]float32, len(m.Grad))
	}
	return c, nil
}

// Errors are what the last step has left out of each of Matrices on this rank: load into them what was saved of them.
func (c *Compressor) Errors() [][]float32 { return c.errors }

// Hook is the ddp.Hook. It is for float32 in host memory.
func (c *Compressor) Hook(b *ddp.Bucket) ccl.Work {
	s, _ := b.State.(*bucket)
	if b.Index == 0 {
		if i := slices.Index(c.found, false); i >= 0 && c.whole {
			return b.Queue.Do(func() error {
				return fmt.Errorf("powersgd: matrix %d is none of the gradients of the Reducer, nor a part of one", i)
			})
		}
		c.Step++
		if c.whole = true; s == nil { // the first step, or a Use, which may have other gradients
			clear(c.found)
		}
	}
	if s == nil {
		var err error
		if s, err = c.split(b); err != nil {
			return b.Queue.Do(func() error { return err })
		}
		b.State = s
	}
	if c.Step <= c.o.Start || len(s.factors) == 0 {
		var w ccl.Work
		for _, x := range b.Bufs {
			w = b.Queue.AllReduce(x, ccl.InPlace(), b.Op)
		}
		return w
	}
	b.Queue.Do(s.left)
	b.Queue.AllReduce(ccl.BufOf(s.p), ccl.InPlace(), b.Op)
	b.Queue.Do(s.right)
	b.Queue.AllReduce(ccl.BufOf(s.q), ccl.InPlace(), b.Op)
	return b.Queue.Do(s.product)
}

// bucket is what the Hook keeps of a ddp.Bucket. After a ddp Use it is made anew, and with it the factors: they are
// the same on all ranks then, whoever has come.
type bucket struct {
	factors []factor
	rest    [][]float32 // what is averaged as it is, at the end of p
	p, q    []float32
	scale   float32 // of a product, to be the mean
}

// factor is a matrix of a bucket and its factors, rows x rank and cols x rank, which are parts of p and q.
type factor struct {
	Matrix
	rank int
	left []float32 // errors: what is left of it
	p, q []float32

	seed, with uint64 // of the first q
}

// split finds the matrices of b in its memory.
func (c *Compressor) split(b *ddp.Bucket) (*bucket, error) {
	s := &bucket{scale: 1}
	if b.Op == ccl.Sum {
		s.scale = 1 / float32(b.Ranks)
	}
	pn, qn := 0, 0
	for _, buf := range b.Bufs {
		x, ok := ccl.SliceOf[float32](buf)
		if !ok {
			return nil, fmt.Errorf("powersgd: the Hook is for float32 in host memory, not for %v", buf.Type())
		}
		taken := make([]bool, len(x))
		for i, m := range c.o.Matrices {
			at, in := within(x, m.Grad)
			r := min(c.o.Rank, m.Rows, m.Cols)
			if c.found[i] = c.found[i] || in; !in || float64(len(m.Grad)) <= c.o.Rate*float64(r)*float64(m.Rows+m.Cols) {
				continue
			}
			if at < 0 || at+len(m.Grad) > len(x) {
				return nil, fmt.Errorf("powersgd: matrix %d is part of several gradients", i)
			}
			for j := range m.Grad {
				if taken[at+j] {
					return nil, fmt.Errorf("powersgd: matrix %d shares memory with another", i)
				}
				taken[at+j] = true
			}
			s.factors = append(s.factors, factor{Matrix: m, rank: r, left: c.errors[i], seed: c.o.Seed, with: uint64(i)})
			pn, qn = pn+r*m.Rows, qn+r*m.Cols
		}
		for lo := 0; lo < len(x); lo++ {
			if taken[lo] {
				continue
			}
			hi := lo
			for hi < len(x) && !taken[hi] {
				hi++
			}
			s.rest = append(s.rest, x[lo:hi])
			lo = hi
		}
	}
	for _, x := range s.rest {
		pn += len(x)
	}
	s.p, s.q = make([]float32, pn), make([]float32, qn)
	p, q := s.p, s.q
	for i := range s.factors {
		f := &s.factors[i]
		f.p, p = p[:f.rank*f.Rows], p[f.rank*f.Rows:]
		f.q, q = q[:f.rank*f.Cols], q[f.rank*f.Cols:]
		f.begin()
	}
	return s, nil
}

// within says at which element of x the memory of y begins, where they have any in common.
func within(x, y []float32) (at int, in bool) {
	const size = int(unsafe.Sizeof(float32(0)))
	a, b := uintptr(unsafe.Pointer(unsafe.SliceData(x))), uintptr(unsafe.Pointer(unsafe.SliceData(y)))
	at = int(b-a) / size // less than 0 where y begins before x
	return at, at < len(x) && at+len(y) > 0
}

// begin makes q random, as on all other ranks.
func (f *factor) begin() {
	for k := range f.rank {
		f.again(k)
	}
}

// again makes column k of q random.
func (f *factor) again(k int) {
	r := rand.New(rand.NewPCG(f.seed, f.with<<32|uint64(k)))
	for i := k; i < len(f.q); i += f.rank {
		f.q[i] = float32(r.NormFloat64())
	}
}

// left makes the left factors of the gradients and what was left of the last ones, and gathers the rest.
func (s *bucket) left() error {
	at := 0
	for i := range s.factors {
		f := &s.factors[i]
		orthogonalize(f.q, f.Cols, f.rank, f.again)
		clear(f.p)
		for row := range f.Rows {
			p := f.p[row*f.rank : (row+1)*f.rank]
			g, m := f.Grad[row*f.Cols:(row+1)*f.Cols], f.left[row*f.Cols:(row+1)*f.Cols]
			for j := range m {
				m[j] += g[j]
				for k, q := range f.q[j*f.rank : (j+1)*f.rank] {
					p[k] += float32(m[j] * q)
				}
			}
		}
		at += len(f.p)
	}
	for _, x := range s.rest {
		at += copy(s.p[at:], x)
	}
	return nil
}

// right makes the right factors by the left ones of all ranks, and gives the rest back.
func (s *bucket) right() error {
	at := 0
	for i := range s.factors {
		f := &s.factors[i]
		orthogonalize(f.p, f.Rows, f.rank, nil)
		clear(f.q)
		for row := range f.Rows {
			p := f.p[row*f.rank : (row+1)*f.rank]
			for j, x := range f.left[row*f.Cols : (row+1)*f.Cols] {
				q := f.q[j*f.rank : (j+1)*f.rank]
				for k := range q {
					q[k] += float32(x * p[k])
				}
			}
		}
		at += len(f.p)
	}
	for _, x := range s.rest {
		at += copy(x, s.p[at:])
	}
	return nil
}

// product makes the gradients of the factors, and keeps what is left of this rank's.
func (s *bucket) product() error {
	bad := false
	for i := range s.factors {
		f := &s.factors[i]
		for row := range f.Rows {
			p := f.p[row*f.rank : (row+1)*f.rank]
			g, m := f.Grad[row*f.Cols:(row+1)*f.Cols], f.left[row*f.Cols:(row+1)*f.Cols]
			for j := range g {
				x := float32(0)
				for k, q := range f.q[j*f.rank : (j+1)*f.rank] {
					x += float32(p[k] * q)
				}
				g[j] = x
				m[j] -= float32(x * s.scale)
				bad = bad || x-x != 0
			}
		}
		if bad { // the next step begins anew: what was left is no number
			clear(f.left)
			f.begin()
			bad = false
		}
	}
	return nil
}

// orthogonalize makes the columns of a, rows x cols, orthogonal and of length 1, by Gram and Schmidt's way, twice,
// which is enough for float32. Of a column that depends on those before, nothing but rounding is left then: it becomes
// 0, or what lost puts there.
func orthogonalize(a []float32, rows, cols int, lost func(k int)) {
	dot := func(k, l int) (sum float64) {
		for i := range rows {
			sum += float64(float64(a[i*cols+k]) * float64(a[i*cols+l]))
		}
		return sum
	}
	const rounding = 1e-10 // of a square
	base := func(k int) bool {
		was := dot(k, k)
		for range 2 {
			for l := range k {
				by := dot(l, k)
				for i := range rows {
					a[i*cols+k] -= float32(by * float64(a[i*cols+l]))
				}
			}
		}
		now, scale := dot(k, k), 0.
		if now > was*rounding {
			scale = 1 / math.Sqrt(now)
		}
		for i := range rows {
			a[i*cols+k] = float32(float64(a[i*cols+k]) * scale)
		}
		return now > was*rounding
	}
	for k := range cols {
		if !base(k) && lost != nil {
			lost(k)
			base(k)
		}
	}
}
