package mat

import "math"

// What gen makes of a kernel, such as add, takes vectors of any one length: whole steps are the
// kernel's, and the rest is the specification's, which has the same bits.

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
func GeluBack(dh, h, s []float32) { geluBack(dh, h, s) }

// Add adds src to dst, of the same length.
func Add(dst, src []float32) { add(dst, src) }

// Scale multiplies x.
func Scale(x []float32, by float32) { scale(x, by) }

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
	softmaxBack(ds, p, dot(ds, p), scale)
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
		rs[i] = float32(1 / math.Sqrt(float64(squares(x, mean)/float32(n))+1e-5))
		norm(y, xh, x, w, mean, rs[i])
	}
}

// NormBack adds to dx the gradient of Norm's x, and to dw that of w, given dy.
func NormBack(xh, rs, dx, dw, dy, w []float32) {
	n := len(w)
	same(len(rs)*n, len(xh), len(dx), len(dy))
	same(n, len(dw))
	for i, s := range rs {
		dx, dy, xh := dx[i*n:i*n+n], dy[i*n:i*n+n], xh[i*n:i*n+n]
		normBack(dx, dw, dy, xh, w, dot(dy, w)/float32(n), dot3(dy, w, xh)/float32(n), s)
	}
}

// AdamW is the numbers of one step, as AdamW.Factors of package optim has them.
type AdamW struct{ Beta1, Alpha1, Beta2, Alpha2, Rate, Root, Keep, Eps float64 }

// Apply updates parameters p by gradients g, with the bits of package optim. m and v are its state.
// All have one length.
func (h *AdamW) Apply(p, g, m, v []float32) {
	adamW(p, g, m, v, float32(h.Beta1), float32(h.Alpha1), float32(h.Beta2), float32(h.Alpha2),
		float32(h.Rate), float32(h.Root), float32(h.Eps), float32(h.Keep))
}

// Sum adds up x: in 16 lanes, which are folded by halves, for each 65,536 elements; the last ones
// that are fewer than 16 are a sum of their own. So do all functions with a result.
func Sum(x []float32) float32 { return sum(x) }

// Dot is the scalar product of x and y, of one length.
func Dot(x, y []float32) float32 { return dot(x, y) }

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
