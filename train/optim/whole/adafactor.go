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
	if t.vector() {
		return t.Rows * t.Cols, 0
	}
	return t.Rows, t.Cols
}

// ApplyAdafactor makes step number step, counted from 1, on all of t: the parameters p with the
// gradients g. row and col are the state, zero at first, of the lengths that State says. With an
// error nothing is changed.
func ApplyAdafactor[T optim.Float](h Adafactor, step int, t Tensor, p, g, row, col []T) error {
	h.LR, h.Power, h.Floor, h.Clip = or(h.LR, .01), or(h.Power, .8), or(h.Floor, 1e-3), or(h.Clip, 1)
	if err := t.check("Adafactor", "its columns and its step's length go over all rows", len(p), len(g)); err != nil {
		return err
	}
	rows, cols := t.State()
	switch {
	case len(row) != rows || len(col) != cols:
		return fmt.Errorf("optim/whole: Adafactor of %q, %d x %d: its state has %d and %d elements, not %d and %d", t.Name,
			t.Rows, t.Cols, rows, cols, len(row), len(col))
	case step < 1:
		return fmt.Errorf("optim/whole: step %d; steps are counted from 1", step)
	case !(h.LR >= 0 && h.Power > 0 && h.Floor >= 0 && h.Clip > 0):
		return fmt.Errorf("optim/whole: Adafactor with LR %v, Power %v, Floor %v, Clip %v: none is negative", h.LR, h.Power,
			h.Floor, h.Clip)
	}
	if len(p) == 0 { // which has no mean
		return nil
	}
	share := root(step, h.Power) // of this step in the averages
	n := len(p)
	rate := max(h.Floor, rms(squares(p), n)) * min(h.LR, 1/math.Sqrt(float64(step)))
	mean := 1. // of the rows; a vector's squares need none
	if cols > 0 {
		mean = average(t, share, g, row, col)
	} else {
		for i, x := range g {
			row[i] = T(lerp(float64(row[i]), float64(float64(x)*float64(x)), share))
		}
	}
	sum := 0.
	for i := range g {
		d := direction(i, cols, mean, g, row, col)
		sum += float64(d * d)
	}
	rate /= max(1, rms(sum, n)/h.Clip)
	keep := 1 - float64(h.LR*h.Decay)
	for i := range p {
		p[i] = T(float64(float64(p[i])*keep) - float64(rate*direction(i, cols, mean, g, row, col)))
	}
	return nil
}

// direction is the step of element i: its gradient over the root of its square, which is at least 1e-30, so that none
// divides by 0 (torch's eps is that of float32, squared).
func direction[T optim.Float](i, cols int, mean float64, g, row, col []T) float64 {
	var square float64
	if cols > 0 {
		square = float64(row[i/cols]) * float64(col[i%cols]) / mean
	} else {
		square = float64(row[i])
	}
	return float64(g[i]) / math.Sqrt(max(square, 1e-30))
}

// average brings the squares of g into the averages of rows and columns, and returns the mean of the rows'.
func average[T optim.Float](t Tensor, share float64, g, row, col []T) (mean float64) {
	for i := range row {
		line := g[i*t.Cols:][:t.Cols]
		row[i] = T(lerp(float64(row[i]), squares(line)/float64(t.Cols), share))
		mean += float64(row[i])
	}
	for j := range col {
		sum := 0.
		for i := range row {
			x := float64(g[i*t.Cols+j])
			sum += float64(x * x)
		}
		col[j] = T(lerp(float64(col[j]), sum/float64(t.Rows), share))
	}
	return max(mean/float64(t.Rows), math.SmallestNonzeroFloat64)
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
