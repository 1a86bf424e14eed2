package whole

import (
	"fmt"
	"math"

	"github.com/goccl/goccl/train/optim"
)

// Adafactor keeps, of the average squares of a matrix's gradients, the means of rows and of columns, and no average of
// gradients (Shazeer and Stern 2018, algorithms 4 and 5), as torch.optim.Adafactor: of a matrix of 1,000 x 1,000 the
// state is 2,000 numbers. A vector has a square for each element.
type Adafactor struct {
	// LR is the most that a step changes a tensor, relative to its root mean square; it is 1/sqrt(step) where that is
	// less. 0 is .01, and optim.Zero is 0: give max(lr, optim.Zero) of a schedule that comes to 0.
	LR float64
	// Power is how fast the averages become long: they keep 1 - step^-Power; 0 is .8.
	Power float64
	// Floor is the least root mean square that a tensor counts with, so that one of zeros moves; 0 is
	// 1e-3, and optim.Zero is 0.
	Floor float64
	// Clip is the most root mean square of a step before LR; 0 is 1.
	Clip float64
	// Decay is the weight decay, times LR.
	Decay float64
}

// State is how long the state of t is: of its rows and its columns, or, of a vector, of its elements and 0.
func (t Tensor) State() (rows, cols int) {
	if t = t.column(); t.Cols == 1 {
		return t.Rows, 0
	}
	return t.Rows, t.Cols
}

// ApplyAdafactor makes step number step, counted from 1, on all of t: the parameters p with the
// gradients g. row and col are the state, zero at first, of the lengths that State says. With an
// error nothing is changed.
func ApplyAdafactor[T optim.Float](h Adafactor, step int, t Tensor, p, g, row, col []T) error {
	if err := t.check("Adafactor", len(p), len(g)); err != nil {
		return err
	}
	rows, cols := t.State()
	if len(row) != rows || len(col) != cols {
		return fmt.Errorf("optim/whole: Adafactor of %q, %d x %d: its state has %d and %d elements, not %d and %d", t.Name, t.Rows, t.Cols, rows, cols, len(row), len(col))
	}
	h, err := h.filled(step)
	if err != nil || len(p) == 0 { // which has no mean
		return err
	}
	f := factors[T]{t.column(), row, col, 0}
	f.t.Lo, f.t.Hi = 0, len(p)
	f.average(root(step, h.Power), func(k int) float64 { return marginal(f.t, k, g) })
	f.apply(h, h.rate(step, len(p), squares(p), f.length(g)), p, g)
	return nil
}

// filled is h with what 0 stands for.
func (h Adafactor) filled(step int) (Adafactor, error) {
	h.LR, h.Power, h.Floor, h.Clip = or(h.LR, .01), or(h.Power, .8), or(h.Floor, 1e-3), or(h.Clip, 1)
	switch {
	case step < 1:
		return h, fmt.Errorf("optim/whole: step %d; steps are counted from 1", step)
	case !(h.LR >= 0 && h.Power > 0 && h.Floor >= 0 && h.Clip > 0):
		return h, fmt.Errorf("optim/whole: Adafactor with LR %v, Power %v, Floor %v, Clip %v: none is negative", h.LR, h.Power, h.Floor, h.Clip)
	}
	return h, nil
}

// rate is what the direction is multiplied by: own and length are the sums of squares of the n
// parameters of the tensor and of their directions.
func (h Adafactor) rate(step, n int, own, length float64) float64 {
	rate := max(h.Floor, math.Sqrt(own/float64(n))) * min(h.LR, 1/math.Sqrt(float64(step)))
	return rate / max(1, math.Sqrt(length/float64(n))/h.Clip)
}

// factors are Adafactor's averages of a tensor, and the mean of those of rows. A vector is a column, and col is empty.
type factors[T optim.Float] struct {
	t        Tensor // whose Lo and Hi say which part is updated
	row, col []T
	mean     float64
}

// average brings the squares of gradients into the averages: sum(k) is their sum in row k and, after all rows, in
// column k-Rows.
func (f *factors[T]) average(share float64, sum func(k int) float64) {
	mean := 0.
	for i := range f.row {
		f.row[i] = T(lerp(float64(f.row[i]), sum(i)/float64(f.t.Cols), share))
		mean += float64(f.row[i])
	}
	for j := range f.col {
		f.col[j] = T(lerp(float64(f.col[j]), sum(len(f.row)+j)/float64(f.t.Rows), share))
	}
	f.mean = max(mean/float64(f.t.Rows), math.SmallestNonzeroFloat64)
}

// direction is the step of element i of the part, whose gradient is g: that over the root of its square, which is at
// least 1e-30, so that none divides by 0 (torch's eps is that of float32, squared).
func (f factors[T]) direction(i int, g T) float64 {
	var square float64
	i += f.t.Lo
	if cols := len(f.col); cols > 0 {
		square = float64(f.row[i/cols]) * float64(f.col[i%cols]) / f.mean
	} else {
		square = float64(f.row[i])
	}
	return float64(g) / math.Sqrt(max(square, 1e-30))
}

// length is the sum of the squares of the directions.
func (f factors[T]) length(g []T) (sum float64) {
	for i, x := range g {
		d := f.direction(i, x)
		sum += float64(d * d)
	}
	return sum
}

// apply makes the step on p.
func (f factors[T]) apply(h Adafactor, rate float64, p, g []T) {
	keep := 1 - float64(h.LR*h.Decay)
	for i, x := range g {
		p[i] = T(float64(float64(p[i])*keep) - float64(rate*f.direction(i, x)))
	}
}

// lerp is a, or b, or what lies between them in that share.
func lerp(a, b, share float64) float64 { return a + float64(share*(b-a)) }

// root is n to the power of -p: math.Pow may be fused on some machines. It is e^(-p ln n), both by their series.
func root(n int, p float64) float64 {
	if n == 1 {
		return 1
	}
	frac, exp := math.Frexp(float64(n)) // frac from 1/2 to 1
	y := (frac - 1) / (frac + 1)
	term, log := y, 0.
	for k := 1; k < 60; k += 2 {
		log += float64(term / float64(k))
		term *= float64(y * y)
	}
	x := float64(-p * (float64(2*log) + float64(float64(exp)*math.Ln2)))
	whole := math.Floor(x / math.Ln2)
	x -= float64(whole * math.Ln2)
	sum, part := 1., 1.
	for k := 1; k < 25; k++ {
		part *= x / float64(k)
		sum += float64(part)
	}
	return math.Ldexp(sum, int(whole))
}
