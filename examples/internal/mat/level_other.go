//go:build noasm || !amd64

package mat

var level int

const maxRows, maxColumns = specRows, specColumns

func tile() (rows, few, columns int) { return specRows, specFew, specColumns }

func peak(k int) int { return specPeak(k) }

func mul(r, k int, a []float32, si, sk int, b, c []float32, ldc int) {
	specMul(r, k, a, si, sk, b, c, ldc)
}
