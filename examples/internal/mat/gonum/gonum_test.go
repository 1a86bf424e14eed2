// Package gonum measures package mat's product beside gonum's Sgemm, in a module of its own.
package gonum

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas32"

	"github.com/goccl/goccl/examples/internal/mat"
)

// shapes are m, n and k.
var shapes = [][3]int{{1024, 1024, 1024}, {2048, 512, 128}, {2048, 128, 512}}

// form is which operands are transposed.
type form struct {
	name   string
	ta, tb bool
}

var forms = []form{{"NN", false, false}, {"TN", true, false}, {"NT", false, true}}

// sgemm adds op(a) op(b) to c, as mat.Mul does.
func sgemm(ta, tb bool, m, n, k int, a, b, c []float32) {
	general := func(t bool, rows, columns int, x []float32) (blas.Transpose, blas32.General) {
		if t {
			return blas.Trans, blas32.General{Rows: columns, Cols: rows, Stride: rows, Data: x}
		}
		return blas.NoTrans, blas32.General{Rows: rows, Cols: columns, Stride: columns, Data: x}
	}
	at, ga := general(ta, m, k, a)
	bt, gb := general(tb, k, n, b)
	blas32.Gemm(at, bt, 1, ga, gb, 1, blas32.General{Rows: m, Cols: n, Stride: n, Data: c})
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// Both make the same product.
func TestSame(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range [][3]int{{1, 1, 1}, {13, 33, 65}, {128, 96, 300}} {
		m, n, k := s[0], s[1], s[2]
		for _, f := range append(forms, form{"TT", true, true}) {
			a, b, c := random(r, m*k), random(r, k*n), random(r, m*n)
			want := slices.Clone(c)
			mat.Mul(f.ta, f.tb, m, n, k, a, b, c)
			sgemm(f.ta, f.tb, m, n, k, a, b, want)
			for i := range c {
				if d := math.Abs(float64(c[i] - want[i])); d > 1e-5*math.Sqrt(float64(k))*4 {
					t.Fatalf("%v %s: element %d is %v, gonum's %v", s, f.name, i, c[i], want[i])
				}
			}
		}
	}
}

// BenchmarkSgemm takes turns on one processor, and says in the median how many times Mul's time goes into gonum's, and
// what part that is of the operations which the core makes in registers alone at that moment. 3 and 0.6 are wanted.
func BenchmarkSgemm(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		x, y, z := random(r, m*k), random(r, k*n), make([]float32, m*n)
		for _, f := range forms {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, n, k, f.name), func(b *testing.B) {
				var ratios, parts []float64
				var fast time.Duration
				for b.Loop() {
					peak := mat.Peak()
					start := time.Now()
					mat.Mul(f.ta, f.tb, m, n, k, x, y, z)
					ours := time.Since(start)
					sgemm(f.ta, f.tb, m, n, k, x, y, z)
					theirs := time.Since(start) - ours
					ratios, fast = append(ratios, theirs.Seconds()/ours.Seconds()), fast+ours
					parts = append(parts, 2*float64(m*n*k)/ours.Seconds()/peak)
				}
				slices.Sort(ratios)
				slices.Sort(parts)
				b.ReportMetric(ratios[len(ratios)/2], "times-gonum")
				b.ReportMetric(parts[len(parts)/2], "of-registers")
				b.ReportMetric(2*float64(m*n*k)*float64(b.N)/fast.Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
