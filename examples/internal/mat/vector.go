package mat

import "math"

// Elementwise functions give whole steps to a kernel and the rest to the specification, where that has the same bits.

// Exp sets x to e^((x - shift) scale).
func Exp(x []float32, shift, scale float32) {
	for ; len(x) >= step; x = x[whole(x):] {
		exp(x[:whole(x)], shift, scale)
	}
	if len(x) > 0 { // by the same kernel, so that an element does not depend on its place
		var t [step]float32
		copy(t[:], x)
		exp(t[:], shift, scale)
		copy(x, t[:])
	}
}

// whole is how many elements of x the next call of a kernel takes.
func whole(x []float32) int { return min(len(x)&^(step-1), piece) }

// Gelu sets y to the GELU of h, in its tanh form, and s to what GeluBack needs. All have one length.
func Gelu(y, s, h []float32) {
	same(len(h), len(y), len(s))
	for len(h) >= step {
		n := whole(h)
		gelu(y[:n], s[:n], h[:n])
		y, s, h = y[n:], s[n:], h[n:]
	}
	if len(h) > 0 {
		var t [3][step]float32
		copy(t[2][:], h)
		gelu(t[0][:], t[1][:], t[2][:])
		copy(y, t[0][:])
		copy(s, t[1][:])
	}
}

// GeluBack multiplies dh by the derivative of the GELU at h; s is what Gelu made of h. All have one length.
func GeluBack(dh, h, s []float32) {
	same(len(h), len(dh), len(s))
	for len(h) >= step {
		n := whole(h)
		geluBack(dh[:n], h[:n], s[:n])
		dh, h, s = dh[n:], h[n:], s[n:]
	}
	specGeluBack(dh, h, s)
}

// Add adds src to dst, of the same length.
func Add(dst, src []float32) {
	same(len(dst), len(src))
	for len(src) >= step {
		n := whole(src)
		add(dst[:n], src[:n])
		dst, src = dst[n:], src[n:]
	}
	specAdd(dst, src)
}

// Scale multiplies x.
func Scale(x []float32, by float32) {
	for ; len(x) >= step; x = x[whole(x):] {
		scale(x[:whole(x)], by)
	}
	specScale(x, by)
}

// Softmax sets x to the weights of scores times scale, which is positive. A score of -Inf is masked.
func Softmax(x []float32, scale float32) {
	sum, _ := weights(x, scale)
	Scale(x, 1/sum)
}

// weights sets x to e^((x - most) scale), and returns their sum, and most.
func weights(x []float32, scale float32) (sum, most float32) {
	most = Most(x)
	Exp(x, most, scale)
	return Sum(x), most
}

// SoftmaxBack sets ds, the gradient of the weights p that Softmax made, to that of its scores.
func SoftmaxBack(ds, p []float32, scale float32) {
	same(len(ds), len(p))
	dot := Dot(ds, p)
	for len(ds) >= step {
		n := whole(ds)
		softmaxBack(ds[:n], p[:n], dot, scale)
		ds, p = ds[n:], p[n:]
	}
	specSoftmaxBack(ds, p, dot, scale)
}

// CrossEntropy returns the loss of one row of logits, and sets the row to its gradient.
func CrossEntropy(x []float32, target int) float64 {
	at := float64(x[target])
	sum, most := weights(x, 1)
	Scale(x, 1/sum)
	x[target]--
	return math.Log(float64(sum)) - (at - float64(most))
}

// Norm normalizes rows of x, as long as w is: y is that times w. xh and rs are for NormBack.
func Norm(y, xh, rs, x, w []float32) {
	n := len(w)
	same(len(rs)*n, len(y), len(xh), len(x))
	for i := range rs {
		y, xh, x := y[i*n:i*n+n], xh[i*n:i*n+n], x[i*n:i*n+n]
		mean := Sum(x) / float32(n)
		rs[i] = float32(1 / math.Sqrt(float64(deviation(x, mean)/float32(n))+1e-5))
		at := n &^ (step - 1)
		if at > 0 {
			norm(y[:at], xh[:at], x[:at], w[:at], mean, rs[i])
		}
		specNorm(y[at:], xh[at:], x[at:], w[at:], mean, rs[i])
	}
}

// NormBack adds to dx the gradient of Norm's x, and to dw that of w, given dy.
func NormBack(xh, rs, dx, dw, dy, w []float32) {
	n := len(w)
	same(len(rs)*n, len(xh), len(dx), len(dy))
	same(n, len(dw))
	for i, s := range rs {
		dx, dy, xh := dx[i*n:i*n+n], dy[i*n:i*n+n], xh[i*n:i*n+n]
		a, b := Dot(dy, w)/float32(n), triple(dy, w, xh)/float32(n)
		at := n &^ (step - 1)
		if at > 0 {
			normBack(dx[:at], dw[:at], dy[:at], xh[:at], w[:at], a, b, s)
		}
		specNormBack(dx[at:], dw[at:], dy[at:], xh[at:], w[at:], a, b, s)
	}
}

// AdamW is the numbers of one step of package optim's AdamW, as its elements need them.
type AdamW struct{ b1, a1, b2, a2, rate, root, eps, keep float32 }

// NewAdamW makes those of a step, counted from 1.
func NewAdamW(lr, beta1, beta2, eps, decay float64, step int) AdamW {
	power := func(b float64) float64 { // math.Pow may be fused on some machines
		x := 1.0
		for n := step; n > 0; n >>= 1 {
			if n&1 != 0 {
				x *= b
			}
			b *= b
		}
		return x
	}
	b1, b2 := float32(beta1), float32(beta2)
	return AdamW{b1: b1, a1: float32(1 - beta1), b2: b2, a2: float32(1 - beta2), rate: float32(lr / (1 - power(beta1))),
		root: float32(1 / math.Sqrt(1-power(beta2))), eps: float32(eps), keep: float32(1 - float64(lr*decay))}
}

// Apply updates parameters p by gradients g, with the bits of package optim. m and v are its state. All have one length.
func (h *AdamW) Apply(p, g, m, v []float32) {
	same(len(p), len(g), len(m), len(v))
	for len(p) >= step {
		n := whole(p)
		adamW(p[:n], g[:n], m[:n], v[:n], h)
		p, g, m, v = p[n:], g[n:], m[n:], v[n:]
	}
	specAdamW(p, g, m, v, h)
}

// Sum adds up x: in 16 lanes, which are folded by halves, for each 65,536 elements; the last ones that are fewer than 16
// are a sum of their own. So do all functions with a result.
func Sum(x []float32) (s float32) {
	for ; len(x) >= step; x = x[whole(x):] {
		s += sum(x[:whole(x)])
	}
	return s + specSum(x)
}

// Dot is the scalar product of x and y, of one length.
func Dot(x, y []float32) (s float32) {
	same(len(x), len(y))
	for len(x) >= step {
		n := whole(x)
		s += dot(x[:n], y[:n])
		x, y = x[n:], y[n:]
	}
	return s + specDot(x, y)
}

// triple is the sum of x y z.
func triple(x, y, z []float32) (s float32) {
	for len(x) >= step {
		n := whole(x)
		s += dot3(x[:n], y[:n], z[:n])
		x, y, z = x[n:], y[n:], z[n:]
	}
	return s + specDot3(x, y, z)
}

// deviation is the sum of (x - mean)^2.
func deviation(x []float32, mean float32) (s float32) {
	for ; len(x) >= step; x = x[whole(x):] {
		s += squares(x[:whole(x)], mean)
	}
	return s + specSquares(x, mean)
}

// Most is the greatest of x; -Inf of none.
func Most(x []float32) float32 {
	m := float32(math.Inf(-1))
	for ; len(x) >= step; x = x[whole(x):] {
		m = max(m, most(x[:whole(x)]))
	}
	return max(m, specMost(x))
}

// same panics unless all lengths are n.
func same(n int, lens ...int) {
	for _, l := range lens {
		if l != n {
			panic("mat: vectors of different lengths")
		}
	}
}
