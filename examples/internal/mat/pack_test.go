package mat

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernels that pack are their specification, and write nothing beside it.
func TestPack(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	eachLevel(t, func(name string) {
		rows, _, columns := tile()
		for _, k := range []int{1, 2, 7, 8, 16, 17, 24, 255, 256} {
			for _, more := range []int{0, 1, 5} {
				what := fmt.Sprintf("%s: k %d, %d more", name, k, more)
				stride := columns + more
				b := random(r, (k-1)*stride+columns)
				want := make([]float32, k*columns)
				specPack(k, stride, want, b)
				p, check := guarded(t, make([]float32, k*columns))
				pack(k, stride, p, b)
				require.Equal(t, want, p, what)
				check(what)

				if k%8 == 0 {
					stride, size := k+more, (k-1)*columns+8
					b := random(r, 7*stride+k)
					want := make([]float32, size)
					specPackT(k, stride, want, b)
					p, check := guarded(t, make([]float32, size))
					packT(k, stride, p, b)
					require.Equal(t, want, p, what)
					check(what)
				}

				for parts := 1; parts <= stripes; parts++ {
					stride, next := parts*rows+more, k*rows+more
					a := random(r, (k-1)*stride+parts*rows)
					want := make([]float32, (parts-1)*next+k*rows)
					specPackRows(k, stride, parts, next, want, a)
					p, check := guarded(t, make([]float32, len(want)))
					packRows(k, stride, parts, next, p, a)
					require.Equal(t, want, p, "%s, %d parts", what, parts)
					check(what)
				}
			}
		}
	})
}

// Strides of A that crowd a set of the first cache are packed, with the same result.
func TestMulCrowded(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const k = crowded / 4
	eachLevel(t, func(name string) {
		rows, _, columns := tile()
		m, n := 2*rows+3, 2*columns+1
		a, b := random(r, m*k), random(r, k*n)
		got, want, lay := make([]float32, m*n), make([]float32, m*n), make([]float32, k*m)
		Mul(false, false, m, n, k, a, b, got)
		for i := range m {
			for q := range k {
				lay[q*m+i] = a[i*k+q]
			}
		}
		Mul(true, false, m, n, k, lay, b, want) // which lies otherwise
		require.Equal(t, want, got, name)
	})
}
