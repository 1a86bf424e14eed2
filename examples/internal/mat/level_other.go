//go:build noasm || !amd64

package mat

var level int

const maxRows, maxColumns = specRows, specColumns

func tile() (rows, few, columns int) { return specRows, specFew, specColumns }

func peak(k int) int { return specPeak(k) }

func mul(r, k int, a []float32, si, sk int, b, c []float32, ldc int) {
	specMul(r, k, a, si, sk, b, c, ldc)
}

func pack(k, stride int, p, b []float32)  { specPack(k, stride, specColumns, p, b) }
func packT(k, stride int, p, b []float32) { specPackT(k, stride, specColumns, p, b) }

func packRows(k, stride, parts, next int, p, a []float32) {
	specPackRows(k, stride, parts, next, specRows, p, a)
}

func adamW(p, g, m, v []float32, h *AdamW) { specAdamW(p, g, m, v, h) }
