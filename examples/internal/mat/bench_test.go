package mat

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkMul also says what share of the operations that the core makes in registers alone that is.
func BenchmarkMul(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	peak := Peak()
	for _, s := range [][3]int{{1024, 1024, 1024}, {2048, 512, 128}, {2048, 128, 512}, {128, 128, 32}, {2048, 384, 1536}} {
		m, n, k := s[0], s[1], s[2]
		x, y, z := random(r, m*k), random(r, k*n), make([]float32, m*n)
		for form, name := range []string{"NN", "TN", "NT"} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, n, k, name), func(b *testing.B) {
				for b.Loop() {
					Mul(form == 1, form == 2, m, n, k, x, y, z)
				}
				rate := 2 * float64(m*n*k) * float64(b.N) / b.Elapsed().Seconds()
				b.ReportMetric(rate/1e9, "GFLOP/s")
				b.ReportMetric(rate/peak, "of-registers")
			})
		}
	}
}

func BenchmarkVector(b *testing.B) {
	const n = 4096
	r := rand.New(rand.NewPCG(3, 4))
	x, y, z, w := random(r, n), random(r, n), random(r, n), random(r, n)
	h := third
	for i := range w {
		w[i] *= w[i]
	}
	for _, tc := range []struct {
		name string
		f    func()
	}{
		{"Exp", func() { Exp(x, 0, -1e-3) }}, {"Gelu", func() { Gelu(x, y, z) }}, {"GeluBack", func() { GeluBack(x, z, y) }},
		{"Softmax", func() { Softmax(x, 1) }}, {"Sum", func() { Sum(x) }}, {"Norm", func() { Norm(x, y, w[:8], z, z[:n/8]) }},
		{"AdamW", func() { h.Apply(x, y, z, w) }},
	} {
		b.Run(tc.name, func(b *testing.B) {
			for b.Loop() {
				tc.f()
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/n, "ns/element")
		})
	}
}
