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

func exp(x []float32, shift, scale float32)        { specExp(x, shift, scale) }
func gelu(y, s, h []float32)                       { specGelu(y, s, h) }
func geluBack(dh, h, s []float32)                  { specGeluBack(dh, h, s) }
func add(dst, src []float32)                       { specAdd(dst, src) }
func scale(x []float32, by float32)                { specScale(x, by) }
func softmaxBack(ds, p []float32, dot, by float32) { specSoftmaxBack(ds, p, dot, by) }
func norm(y, xh, x, w []float32, mean, rs float32) { specNorm(y, xh, x, w, mean, rs) }
func adamW(p, g, m, v []float32, h *AdamW)         { specAdamW(p, g, m, v, h) }
func sum(x []float32) float32                      { return specSum(x) }
func dot(x, y []float32) float32                   { return specDot(x, y) }
func dots(x, y, z []float32) float32               { return specDot3(x, y, z) }
func square(x []float32, mean float32) float32     { return specSquares(x, mean) }
func most(x []float32) float32                     { return specMost(x) }

func normBack(dx, dw, dy, xh, w []float32, a, b, rs float32) {
	specNormBack(dx, dw, dy, xh, w, a, b, rs)
}
