//go:build !noasm

package mat

import "golang.org/x/sys/cpu"

// The instruction sets that there are kernels for.
const (
	specification = iota
	avx2
	avx512
	levels
)

// level is the best that this machine has; tests choose others.
var level = best()

func best() int {
	x := &cpu.X86
	switch {
	case x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL:
		return avx512
	case x.HasAVX2 && x.HasFMA:
		return avx2
	}
	return specification
}

// maxRows and maxColumns are the largest tile.
const maxRows, maxColumns = 12, 32

// tile is the rows and columns of C that the register kernel computes, and the rows of the one for what is left over.
func tile() (rows, few, columns int) {
	switch level {
	case avx512:
		return 12, 4, 32
	case avx2:
		return 6, 2, 16
	}
	return specRows, specFew, specColumns
}

// mul is the register kernel for r rows: tile's first or second.
func mul(r, k int, a []float32, si, sk int, b, c []float32, ldc int) {
	switch {
	case level == avx512 && r == 12:
		mulAVX512(k, 4*si, 4*sk, ldc, &a[0], &b[0], &c[0])
	case level == avx512:
		mulFewAVX512(k, 4*si, 4*sk, ldc, &a[0], &b[0], &c[0])
	case level == avx2 && r == 6:
		mulAVX2(k, 4*si, 4*sk, ldc, &a[0], &b[0], &c[0])
	case level == avx2:
		mulFewAVX2(k, 4*si, 4*sk, ldc, &a[0], &b[0], &c[0])
	default:
		specMul(r, k, a, si, sk, b, c, ldc)
	}
}

func pack(k, stride int, p, b []float32) {
	switch level {
	case avx512:
		packAVX512(k, stride, &p[0], &b[0])
	case avx2:
		packAVX2(k, stride, &p[0], &b[0])
	default:
		specPack(k, stride, specColumns, p, b)
	}
}

func packT(k, stride int, p, b []float32) {
	switch level {
	case avx512:
		packTAVX512(k, stride, &p[0], &b[0])
	case avx2:
		packTAVX2(k, stride, &p[0], &b[0])
	default:
		specPackT(k, stride, specColumns, p, b)
	}
}

func packRows(k, stride, parts, next int, p, a []float32) {
	switch level {
	case avx512:
		packRowsAVX512(k, stride, parts, next, &p[0], &a[0])
	case avx2:
		packRowsAVX2(k, stride, parts, next, &p[0], &a[0])
	default:
		specPackRows(k, stride, parts, next, specRows, p, a)
	}
}

// peak makes k times 12 vectors of multiplications and additions, and returns how many numbers a vector has.
func peak(k int) int {
	switch level {
	case avx512:
		peakAVX512(k)
		return 16
	case avx2:
		peakAVX2(k)
		return 8
	}
	return specPeak(k)
}

func exp(x []float32, shift, scale float32) {
	switch level {
	case avx512:
		expAVX512(len(x), &x[0], shift, scale)
	case avx2:
		expAVX2(len(x), &x[0], shift, scale)
	default:
		specExp(x, shift, scale)
	}
}

func gelu(y, s, h []float32) {
	switch level {
	case avx512:
		geluAVX512(len(y), &y[0], &s[0], &h[0])
	case avx2:
		geluAVX2(len(y), &y[0], &s[0], &h[0])
	default:
		specGelu(y, s, h)
	}
}

func geluBack(dh, h, s []float32) {
	switch level {
	case avx512:
		geluBackAVX512(len(dh), &dh[0], &h[0], &s[0])
	case avx2:
		geluBackAVX2(len(dh), &dh[0], &h[0], &s[0])
	default:
		specGeluBack(dh, h, s)
	}
}

func add(dst, src []float32) {
	switch level {
	case avx512:
		addAVX512(len(dst), &dst[0], &src[0])
	case avx2:
		addAVX2(len(dst), &dst[0], &src[0])
	default:
		specAdd(dst, src)
	}
}

func scale(x []float32, by float32) {
	switch level {
	case avx512:
		scaleAVX512(len(x), &x[0], by)
	case avx2:
		scaleAVX2(len(x), &x[0], by)
	default:
		specScale(x, by)
	}
}

func softmaxBack(ds, p []float32, dot, scale float32) {
	switch level {
	case avx512:
		softmaxBackAVX512(len(ds), &ds[0], &p[0], dot, scale)
	case avx2:
		softmaxBackAVX2(len(ds), &ds[0], &p[0], dot, scale)
	default:
		specSoftmaxBack(ds, p, dot, scale)
	}
}

func norm(y, xh, x, w []float32, mean, rs float32) {
	switch level {
	case avx512:
		normAVX512(len(y), &y[0], &xh[0], &x[0], &w[0], mean, rs)
	case avx2:
		normAVX2(len(y), &y[0], &xh[0], &x[0], &w[0], mean, rs)
	default:
		specNorm(y, xh, x, w, mean, rs)
	}
}

func normBack(dx, dw, dy, xh, w []float32, a, b, rs float32) {
	switch level {
	case avx512:
		normBackAVX512(len(dx), &dx[0], &dw[0], &dy[0], &xh[0], &w[0], a, b, rs)
	case avx2:
		normBackAVX2(len(dx), &dx[0], &dw[0], &dy[0], &xh[0], &w[0], a, b, rs)
	default:
		specNormBack(dx, dw, dy, xh, w, a, b, rs)
	}
}

func sum(x []float32) float32 {
	switch level {
	case avx512:
		return sumAVX512(len(x), &x[0])
	case avx2:
		return sumAVX2(len(x), &x[0])
	}
	return specSum(x)
}

func dot(x, y []float32) float32 {
	switch level {
	case avx512:
		return dotAVX512(len(x), &x[0], &y[0])
	case avx2:
		return dotAVX2(len(x), &x[0], &y[0])
	}
	return specDot(x, y)
}

func dots(x, y, z []float32) float32 {
	switch level {
	case avx512:
		return dot3AVX512(len(x), &x[0], &y[0], &z[0])
	case avx2:
		return dot3AVX2(len(x), &x[0], &y[0], &z[0])
	}
	return specDot3(x, y, z)
}

func square(x []float32, mean float32) float32 {
	switch level {
	case avx512:
		return squaresAVX512(len(x), &x[0], mean)
	case avx2:
		return squaresAVX2(len(x), &x[0], mean)
	}
	return specSquares(x, mean)
}

func most(x []float32) float32 {
	switch level {
	case avx512:
		return mostAVX512(len(x), &x[0])
	case avx2:
		return mostAVX2(len(x), &x[0])
	}
	return specMost(x)
}

func adamW(p, g, m, v []float32, h *AdamW) {
	switch level {
	case avx512:
		adamWAVX512(len(p), &p[0], &g[0], &m[0], &v[0], h.b1, h.a1, h.b2, h.a2, h.rate, h.root, h.eps, h.keep)
	case avx2:
		adamWAVX2(len(p), &p[0], &g[0], &m[0], &v[0], h.b1, h.a1, h.b2, h.a2, h.rate, h.root, h.eps, h.keep)
	default:
		specAdamW(p, g, m, v, h)
	}
}
