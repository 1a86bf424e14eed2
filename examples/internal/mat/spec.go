package mat

import "math"

// The specification. Each product is converted, so that no compiler fuses it with an addition.

// specExp sets x to e^((x - shift) scale).
func specExp(x []float32, shift, scale float32) {
	for i, v := range x {
		x[i] = float32(math.Exp(float64((v - shift) * scale)))
	}
}

// The GELU in its tanh form (Hendrycks and Gimpel 2016), with (1 + tanh u)/2 = 1/(1 + e^-2u).
const (
	root  = 0.7978845608028654 // of 2/pi
	cubic = 0.044715
)

// specGelu sets y to the GELU of h, and s to what specGeluBack needs.
func specGelu(y, s, h []float32) {
	for i, e := range h {
		z := e * (float32(float32(e*e)*float32(2*root*cubic)) + float32(2*root))
		d := 1 + math.Exp(-float64(z))
		s[i] = float32(1 / d)
		y[i] = float32(float64(e) / d)
	}
}

// specGeluBack multiplies dh by the derivative.
func specGeluBack(dh, h, s []float32) {
	for i, e := range h {
		d := float32(float32(e*e)*float32(6*root*cubic)) + float32(2*root)
		q := float32(s[i] * (1 - s[i]))
		dh[i] *= s[i] + float32(float32(e*q)*d)
	}
}

func specAdd(dst, src []float32) {
	for i, v := range src {
		dst[i] += v
	}
}

func specScale(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}

func specSoftmaxBack(ds, p []float32, dot, scale float32) {
	for i, v := range p {
		ds[i] = (ds[i] - dot) * v * scale
	}
}

func specNorm(y, xh, x, w []float32, mean, rs float32) {
	for i, v := range x {
		h := (v - mean) * rs
		xh[i], y[i] = h, h*w[i]
	}
}

func specNormBack(dx, dw, dy, xh, w []float32, a, b, rs float32) {
	for i, d := range dy {
		dw[i] += float32(d * xh[i])
		dx[i] += float32((float32(d*w[i]) - a - float32(xh[i]*b)) * rs)
	}
}

func specAdamW(p, g, m, v []float32, b1, a1, b2, a2, rate, root, eps, keep float32) {
	for i, d := range g {
		m[i] = float32(b1*m[i]) + float32(a1*d)
		v[i] = float32(b2*v[i]) + float32(float32(a2*d)*d)
		q := float32(float32(math.Sqrt(float64(v[i])))*root) + eps
		p[i] = float32(p[i]*keep) - float32(rate*m[i])/q
	}
}

// fold adds up terms: number i goes into lane i mod 16, and the lanes are folded by halves.
func fold(lane *[step]float32) float32 {
	for n := step / 2; n > 0; n /= 2 {
		for i := range n {
			lane[i] += lane[i+n]
		}
	}
	return lane[0]
}

func specSum(x []float32) float32 {
	var lane [step]float32
	for i, v := range x {
		lane[i%step] += v
	}
	return fold(&lane)
}

func specDot(x, y []float32) float32 {
	var lane [step]float32
	for i, v := range x {
		lane[i%step] += float32(v * y[i])
	}
	return fold(&lane)
}

func specDot3(x, y, z []float32) float32 {
	var lane [step]float32
	for i, v := range x {
		lane[i%step] += float32(float32(v*y[i]) * z[i])
	}
	return fold(&lane)
}

func specSquares(x []float32, mean float32) float32 {
	var lane [step]float32
	for i, v := range x {
		lane[i%step] += float32((v - mean) * (v - mean))
	}
	return fold(&lane)
}

func specMost(x []float32) float32 {
	most := float32(math.Inf(-1))
	for _, v := range x {
		if v > most {
			most = v
		}
	}
	return most
}

// specRows and specColumns are the size of specMul's tile, and specFew its rows for what is left over.
const specRows, specFew, specColumns = 4, 2, 8

// specMul is the register kernel of Mul for r rows: c[i*ldc+j] += the sum over p < k of
// a[i*si+p*sk] b[p*specColumns+j].
func specMul(r, k int, a []float32, si, sk int, b, c []float32, ldc int) {
	for i := range r {
		var acc [specColumns]float32
		for p := range k {
			x := a[i*si+p*sk]
			row := (*[specColumns]float32)(b[p*specColumns:])
			for j := range acc {
				acc[j] += float32(x * row[j])
			}
		}
		for j, v := range acc {
			c[i*ldc+j] += v
		}
	}
}

// specPack sets p[i*columns+j] = b[i*stride+j] for i < k and j < columns.
func specPack(k, stride int, p, b []float32) {
	_, _, columns := tile()
	for i := range k {
		copy(p[i*columns:(i+1)*columns], b[i*stride:])
	}
}

// specPackT sets p[i*columns+j] = b[j*stride+i] for i < k, a multiple of 8, and j < 8.
func specPackT(k, stride int, p, b []float32) {
	_, _, columns := tile()
	for i := range k {
		for j := range 8 {
			p[i*columns+j] = b[j*stride+i]
		}
	}
}

// specPackRows sets p[s*next+q*rows+i] = a[q*stride+s*rows+i] for q < k, s < parts and i < rows.
func specPackRows(k, stride, parts, next int, p, a []float32) {
	rows, _, _ := tile()
	for q := range k {
		for s := range parts {
			copy(p[s*next+q*rows:][:rows], a[q*stride+s*rows:])
		}
	}
}
