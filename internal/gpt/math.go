package gpt

import "math"

// Kernels is the arithmetic of a model. The functions of Reference say what each computes.
type Kernels[T Float] struct {
	Mul          func(ta, tb bool, m, n, k int, a, b, c []T)
	Add          func(dst, src []T)
	Scale        func(x []T, by T)
	Gelu         func(y, s, h []T)
	GeluBack     func(dh, h, s []T)
	Norm         func(y, xh, rs, x, w []T)
	NormBack     func(xh, rs, dx, dw, dy, w []T)
	Softmax      func(x []T, scale T)
	SoftmaxBack  func(ds, p []T, scale T)
	CrossEntropy func(x []T, target int) float64
}

// Reference is plain Go.
func Reference[T Float]() Kernels[T] {
	return Kernels[T]{mul[T], add[T], scale[T], gelu[T], geluBack[T], norm[T], normBack[T], softmax[T], softmaxBack[T],
		crossEntropy[T]}
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

// add adds src to dst.
func add[T Float](dst, src []T) {
	for i, v := range src {
		dst[i] += v
	}
}

// scale multiplies x.
func scale[T Float](x []T, by T) {
	for i := range x {
		x[i] *= by
	}
}

// The GELU in its tanh form (Hendrycks and Gimpel 2016).
const (
	root  = 0.7978845608028654 // of 2/pi
	cubic = 0.044715
)

// gelu sets y to the GELU of h, and s to what geluBack needs: (1 + tanh u)/2 = 1/(1 + e^-2u).
func gelu[T Float](y, s, h []T) {
	for i, e := range h {
		s[i] = T(1 / (1 + math.Exp(-2*root*float64(e+cubic*e*e*e))))
		y[i] = e * s[i]
	}
}

// geluBack multiplies dh by the derivative.
func geluBack[T Float](dh, h, s []T) {
	for i, e := range h {
		dh[i] *= s[i] + e*s[i]*(1-s[i])*2*root*(1+3*cubic*e*e)
	}
}

// norm sets the rows of out to those of x normalized, times w; xh and rs are kept for normBack.
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

// softmax sets x to the weights of scores times scale. A score of -Inf is masked.
func softmax[T Float](x []T, scale T) { weights(x, scale) }

// weights is softmax; it returns the logarithm of the sum of e^(score scale).
func weights[T Float](x []T, scale T) float64 {
	most := x[0]
	for _, e := range x {
		most = max(most, e)
	}
	var sum T
	for i, e := range x {
		x[i] = T(math.Exp(float64((e - most) * scale)))
		sum += x[i]
	}
	for i := range x {
		x[i] *= 1 / sum
	}
	return float64(most*scale) + math.Log(float64(sum))
}

// softmaxBack sets ds, the gradient of the weights p, to that of the scores.
func softmaxBack[T Float](ds, p []T, scale T) {
	var dot T
	for i, e := range ds {
		dot += e * p[i]
	}
	for i := range ds {
		ds[i] = (ds[i] - dot) * p[i] * scale
	}
}

// crossEntropy returns the loss of one row of logits, and sets the row to its gradient.
func crossEntropy[T Float](x []T, target int) float64 {
	at := float64(x[target])
	loss := weights(x, 1) - at
	x[target]--
	return loss
}
