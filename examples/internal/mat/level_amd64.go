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
