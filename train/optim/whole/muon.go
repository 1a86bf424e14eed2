package whole

import (
	"cmp"
	"fmt"
	"math"

	"github.com/goccl/goccl/train/optim"
)

// Muon steps by the orthogonal matrix that is nearest to the momentum (Jordan et al. 2024), as torch.optim.Muon: every
// direction in a matrix is stepped in alike.
type Muon struct {
	// LR is the learning rate of this step.
	LR float64
	// Momentum is how much of the average of gradients is kept; 0 is .95, and optim.Zero is 0.
	Momentum float64
	// Plain leaves out Nesterov's look ahead, by the momentum, from the average.
	Plain bool
	// Decay is the weight decay, times LR.
	Decay float64
	// Iterations of Newton and Schulz; 0 is 5.
	Iterations int
	// MatchAdamW makes the root mean square of a step .2, about that of AdamW, so that its LR and Decay fit (Liu et al.
	// 2025). Else a matrix with more rows than columns takes steps that are longer by the root of rows over columns,
	// where rows are a layer's outputs, as in PyTorch.
	MatchAdamW bool
}

// Workspace is the memory of Muon: four matrices of the largest size. Its zero value is ready. One
// may serve all tensors.
type Workspace[T optim.Float] struct {
	// Mul adds a product to c, which has m rows and n columns: op(a) op(b), where op(a) has k columns; with ta, a is
	// stored as k rows of m, and with tb, b as n rows of k. nil is loops in Go, whose bits are the same on every machine;
	// a program that has a faster product gives it here.
	Mul func(ta, tb bool, m, n, k int, a, b, c []T)

	mem []T
}

// take cuts memory for matrices like t and their products.
func (w *Workspace[T]) take(t Tensor) (X, next, A, B []T) {
	x, gram := t.Rows*t.Cols, min(t.Rows, t.Cols)*min(t.Rows, t.Cols)
	if n := 2*x + 2*gram; len(w.mem) < n {
		w.mem = make([]T, n)
	}
	m := w.mem
	return m[:x:x], m[x : 2*x : 2*x], m[2*x : 2*x+gram], m[2*x+gram : 2*x+2*gram]
}

// The coefficients of Jordan's polynomial: it brings singular values to between about .7 and 1.2 in five iterations.
const linear, third, fifth = 3.4445, -4.7750, 2.0315

// ApplyMuon makes a step on all of t: the parameters p with the gradients g. m is the state, zero
// at first. With an error nothing is changed.
func ApplyMuon[T optim.Float](h Muon, t Tensor, p, g, m []T, w *Workspace[T]) error {
	if err := t.check("Muon", len(p), len(g), len(m)); err != nil {
		return err
	}
	if w == nil {
		return fmt.Errorf("optim/whole: Muon of %q has no Workspace", t.Name)
	}
	h, err := h.filled()
	if err != nil {
		return err
	}
	_, u, _, _ := w.take(t)
	ahead(h, g, m, u)
	muonStep(h, t, p, w.orthogonal(h, t))
	return nil
}

// filled is h with what 0 stands for.
func (h Muon) filled() (Muon, error) {
	h.Momentum, h.Iterations = or(h.Momentum, .95), cmp.Or(h.Iterations, 5)
	if !(h.Momentum >= 0 && h.Momentum < 1 && h.Iterations > 0) {
		return h, fmt.Errorf("optim/whole: Muon with Momentum %v, %d iterations: Momentum is from 0 to 1 and less than 1", h.Momentum, h.Iterations)
	}
	return h, nil
}

// ahead brings g into the averages m, and what the step is made of into u.
func ahead[T optim.Float](h Muon, g, m, u []T) {
	keep, share := T(h.Momentum), T(1-h.Momentum)
	for i, x := range g {
		m[i] = T(keep*m[i]) + T(share*x)
		if u[i] = m[i]; !h.Plain {
			u[i] = T(share*x) + T(keep*m[i])
		}
	}
}

// orthogonal returns the orthogonal matrix that is nearest to the one that is in next of take. It lies
// in w until the next call.
func (w *Workspace[T]) orthogonal(h Muon, t Tensor) []T {
	X, next, A, B := w.take(t)
	rows, cols := min(t.Rows, t.Cols), max(t.Rows, t.Cols) // of X, which lies on its side
	transpose := func(to, from []T, n int) {               // whose rows have n elements
		for i, x := range from {
			to[i%n*(len(from)/n)+i/n] = x
		}
	}
	if t.Rows > t.Cols {
		transpose(X, next, t.Cols)
	} else {
		copy(X, next)
	}
	by := T(1 / max(math.Sqrt(squares(X)), 1e-7))
	for i := range X {
		X[i] *= by
	}
	for range h.Iterations {
		clear(A)
		w.mul(true, rows, rows, cols, X, X, A)
		clear(B)
		w.mul(false, rows, rows, rows, A, A, B)
		for i := range B {
			B[i] = T(third*A[i]) + T(fifth*B[i])
		}
		for i := range X {
			next[i] = T(linear * X[i])
		}
		w.mul(false, rows, cols, rows, B, X, next)
		X, next = next, X
	}
	if t.Rows > t.Cols {
		transpose(next, X, t.Rows)
		return next
	}
	return X
}

// muonStep makes the step on a part of t, given the part of the orthogonal matrix.
func muonStep[T optim.Float](h Muon, t Tensor, p, u []T) {
	rate := h.LR
	if h.MatchAdamW {
		rate *= .2 * math.Sqrt(float64(max(t.Rows, t.Cols)))
	} else {
		rate *= math.Sqrt(max(1, float64(t.Rows)/float64(t.Cols)))
	}
	left, by := T(1-float64(h.LR*h.Decay)), T(rate)
	for i := range p {
		p[i] = T(p[i]*left) - T(by*u[i])
	}
}

// mul adds a b, or with tb a times the transpose of b, to c.
func (w *Workspace[T]) mul(tb bool, m, n, k int, a, b, c []T) {
	if w.Mul != nil {
		w.Mul(false, tb, m, n, k, a, b, c)
		return
	}
	for i := range m {
		x, z := a[i*k:][:k], c[i*n:][:n]
		if tb {
			for j := range z {
				sum := T(0)
				for l, y := range b[j*k:][:k] {
					sum += T(x[l] * y)
				}
				z[j] += sum
			}
			continue
		}
		for l, e := range x {
			for j, y := range b[l*n:][:n] {
				z[j] += T(e * y)
			}
		}
	}
}
