package gpt

import "math"

// Kernels is the arithmetic of a model. The functions of Reference say what each computes.
type Kernels[T Float] struct {
	Mul      func(ta, tb bool, m, n, k int, a, b, c []T)
	Exp      func(x []T, shift, scale T)
	Gelu     func(g, th, h []T)
	GeluBack func(dh, h, th []T)
}

// Reference is plain Go.
func Reference[T Float]() Kernels[T] {
	return Kernels[T]{mul[T], exp[T], gelu[T], geluBack[T]}
}

// mul adds op(a) op(b) to c, which has m rows and n columns. op(a) has k columns; with ta, a is stored as k rows of m;
// with tb, b is stored as n rows of k.
func mul[T Float](ta, tb bool, m, n, k int, a, b, c []T) {
	for i := range m {
		row := c[i*n : i*n+n]
		for p := range k {
			at := i*k + p
			if ta {
				at = p*m + i
			}
			x := a[at]
			if tb {
				for j := range row {
					row[j] += x * b[j*k+p]
				}
				continue
			}
			for j, y := range b[p*n : p*n+n] {
				row[j] += x * y
			}
		}
	}
}

// exp sets x to e^((x - shift) scale).
func exp[T Float](x []T, shift, scale T) {
	for i, v := range x {
		x[i] = T(math.Exp(float64((v - shift) * scale)))
	}
}

// The GELU in its tanh form (Hendrycks and Gimpel 2016).
const (
	root  = 0.7978845608028654 // of 2/pi
	cubic = 0.044715
)

// gelu sets g to the GELU of h, and th to what geluBack needs.
func gelu[T Float](g, th, h []T) {
	for i, e := range h {
		th[i] = T(math.Tanh(root * float64(e+cubic*e*e*e)))
		g[i] = .5 * e * (1 + th[i])
	}
}

// geluBack multiplies dh by the derivative.
func geluBack[T Float](dh, h, th []T) {
	for i, e := range h {
		t := th[i]
		dh[i] *= .5*(1+t) + .5*e*(1-t*t)*root*(1+3*cubic*e*e)
	}
}

// norm sets out to x normalized, times w; xh and rs are kept for normBack.
func norm[T Float](out, xh, rs, x, w []T) {
	n := len(w)
	for i := range rs {
		r, h, o := x[i*n:i*n+n], xh[i*n:i*n+n], out[i*n:i*n+n]
		var mean, v T
		for _, e := range r {
			mean += e
		}
		mean /= T(n)
		for _, e := range r {
			v += (e - mean) * (e - mean)
		}
		rs[i] = T(1 / math.Sqrt(float64(v/T(n))+1e-5))
		for j, e := range r {
			h[j] = (e - mean) * rs[i]
			o[j] = h[j] * w[j]
		}
	}
}

// normBack adds to dx and to dw.
func normBack[T Float](xh, rs, dx, dw, dout, w []T) {
	n := len(w)
	for i, s := range rs {
		d, h, o := dout[i*n:i*n+n], xh[i*n:i*n+n], dx[i*n:i*n+n]
		var a, b T
		for j := range d {
			g := d[j] * w[j]
			a += g
			b += g * h[j]
			dw[j] += d[j] * h[j]
		}
		a, b = a/T(n), b/T(n)
		for j := range d {
			o[j] += (d[j]*w[j] - a - h[j]*b) * s
		}
	}
}

// softmax sets r to the weights of scores times scale.
func (n *Net[T]) softmax(r []T, scale T) {
	most := r[0]
	for _, e := range r {
		most = max(most, e)
	}
	n.K.Exp(r, most, scale)
	var sum T
	for _, e := range r {
		sum += e
	}
	for i := range r {
		r[i] *= 1 / sum
	}
}
