package mat

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// eachLevel runs f with each set of kernels that this machine has.
func eachLevel(t testing.TB, f func(name string)) {
	old := level
	defer func() { level = old }()
	names := []string{"specification", "avx2", "avx512"}
	for level = range old + 1 {
		f(names[level])
	}
}

func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// guarded is a copy of x with words around it that nobody may change.
func guarded(t testing.TB, x []float32) (in []float32, check func(what string)) {
	const words = 33
	all := make([]float32, len(x)+2*words)
	for i := range all {
		all[i] = -77
	}
	copy(all[words:], x)
	return all[words : words+len(x)], func(what string) {
		for i, v := range all {
			if (i < words || i >= words+len(x)) && v != -77 {
				t.Fatalf("%s has written %d words from the %d of its result", what, i-words, len(x))
			}
		}
	}
}

// ulps is how far a is from b, in units of b's last place.
func ulps(a, b float32) float64 {
	if a == b || math.IsNaN(float64(a)) && math.IsNaN(float64(b)) {
		return 0
	}
	key := func(x float32) int64 {
		if i := int64(int32(math.Float32bits(x))); i >= 0 {
			return i
		}
		return -int64(math.Float32bits(x) &^ (1 << 31))
	}
	return math.Abs(float64(key(a) - key(b)))
}

// index says where element (row, column) of op(x) lies.
func index(t bool, rows, columns, i, j int) int {
	if t {
		return j*rows + i
	}
	return i*columns + j
}

func TestMul(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shapes := [][3]int{{1, 1, 1}, {12, 32, 256}, {13, 33, 257}, {6, 16, 512}, {5, 1025, 3}, {97, 1, 300}, {25, 1100, 40}}
	for range 20 {
		shapes = append(shapes, [3]int{1 + r.IntN(70), 1 + r.IntN(70), 1 + r.IntN(600)})
	}
	for _, s := range shapes {
		m, n, k := s[0], s[1], s[2]
		for form := range 4 {
			ta, tb := form&1 > 0, form&2 > 0
			a, b, start := random(r, m*k), random(r, k*n), random(r, m*n)
			want := make([]float64, m*n)
			for i := range m {
				for p := range k {
					x := float64(a[index(ta, m, k, i, p)])
					for j := range n {
						want[i*n+j] += x * float64(b[index(tb, k, n, p, j)])
					}
				}
			}
			eachLevel(t, func(name string) {
				what := fmt.Sprintf("%s: %d x %d x %d, %v %v", name, m, n, k, ta, tb)
				ga, okA := guarded(t, a)
				gb, okB := guarded(t, b)
				c, okC := guarded(t, start)
				Mul(ta, tb, m, n, k, ga, gb, c)
				for i := range c {
					require.InDelta(t, want[i]+float64(start[i]), c[i], 2e-6*math.Sqrt(float64(k))*8, "%s, element %d", what, i)
				}
				okA(what)
				okB(what)
				okC(what)
			})
		}
	}
}

// An element of a product has the same bits, whatever rows and columns are beside it.
func TestMulParts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	const m, n, k = 29, 70, 300
	a, b := random(r, m*k), random(r, k*n)
	eachLevel(t, func(name string) {
		all := make([]float32, m*n)
		Mul(false, false, m, n, k, a, b, all)
		for _, cut := range []int{1, 7, 12, 28} {
			part := make([]float32, m*n)
			Mul(false, false, cut, n, k, a, b, part)
			Mul(false, false, m-cut, n, k, a[cut*k:], b, part[cut*n:])
			require.Equal(t, all, part, "%s, %d rows", name, cut)
		}
	})
}

func TestPeak(t *testing.T) {
	eachLevel(t, func(name string) {
		p := Peak()
		require.Greater(t, p, 1e6, name)
		require.Less(t, p, 1e13, name)
	})
}

// floats are positive and negative, of all magnitudes, and those that are special.
func floats(lo, hi float64) []float32 {
	n := 200_000
	if testing.Short() {
		n /= 20
	}
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-40, -1e-40, float32(lo), float32(hi)}
	for i := range n {
		x = append(x, float32(lo+(hi-lo)*float64(i)/float64(n)))
	}
	r := rand.New(rand.NewPCG(5, 6))
	for range n {
		x = append(x, float32(r.NormFloat64()*math.Exp(r.NormFloat64()*4)))
	}
	return x
}

// lengths are those that vectors are tested with: around whole steps.
var lengths = []int{0, 1, 15, 16, 17, 31, 32, 48, 63, 100, 257}

func TestExp(t *testing.T) {
	all := floats(-110, 95)
	all = append(all, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32)
	want := append([]float32(nil), all...)
	specExp(want, 0, 1)
	eachLevel(t, func(name string) {
		x, check := guarded(t, all)
		Exp(x, 0, 1)
		check(name)
		worst := 0.
		for i := range x {
			require.LessOrEqual(t, ulps(x[i], want[i]), 1., "%s: e^%v is %v, not %v", name, all[i], x[i], want[i])
			worst = max(worst, ulps(x[i], want[i]))
		}
		t.Logf("%s: %v ulp", name, worst)
		for _, n := range lengths {
			x, check := guarded(t, all[1000:1000+n])
			Exp(x, 3, .5)
			check(name)
			y := append([]float32(nil), all[1000:1000+n]...)
			specExp(y, 3, .5)
			for i := range x {
				require.LessOrEqual(t, ulps(x[i], y[i]), 1., "%s: %d of %d", name, i, n)
			}
		}
	})
}

func TestGelu(t *testing.T) {
	all := append(floats(-15, 15), 1e18, -1e18, float32(math.NaN()))
	n := len(all)
	y, s := make([]float32, n), make([]float32, n)
	specGelu(y, s, all)
	eachLevel(t, func(name string) {
		for _, n := range append(lengths, n) {
			h := all[len(all)-n:]
			gy, okY := guarded(t, make([]float32, n))
			gs, okS := guarded(t, make([]float32, n))
			Gelu(gy, gs, h)
			okY(name)
			okS(name)
			worst := 0.
			for i, v := range h {
				at := len(all) - n + i
				d := max(ulps(gy[i], y[at]), ulps(gs[i], s[at]))
				if s[at] < 0x1p-126 && math.Abs(float64(v)) > 1 {
					d /= math.Abs(float64(v)) // times a denormal number
				}
				require.LessOrEqual(t, d, 2., "%s: %v gives %v, %v, not %v, %v", name, v, gy[i], gs[i], y[at], s[at])
				worst = max(worst, d)
			}
			if n > 1000 {
				t.Logf("%s: %v ulp", name, worst)
			}
			// the same bits wherever an element lies
			d := h[n/3:]
			Gelu(y[:len(d)], s[:len(d)], d)
			for i := range d {
				require.Zero(t, ulps(gy[n/3+i], y[i]), "%s: %d of %d", name, i, n)
			}
			specGelu(y, s, all)
		}
	})
	for i := range 2000 { // the derivative against differences of the exact function
		h := []float32{float32(i-1000) / 150}
		f := func(v float64) float64 { return .5 * v * (1 + math.Tanh(root*(v+cubic*v*v*v))) }
		y, s, d := make([]float32, 1), make([]float32, 1), []float32{1}
		Gelu(y, s, h)
		GeluBack(d, h, s)
		v := float64(h[0])
		require.InDelta(t, f(v), y[0], 1e-6, "%v", v)
		require.InDelta(t, (f(v+1e-5)-f(v-1e-5))/2e-5, d[0], 2e-6, "%v", v)
	}
}

// third is the numbers of a third step of AdamW.
var third = AdamW{Beta1: .9, Alpha1: .1, Beta2: .95, Alpha2: .05, Rate: 3.7e-3, Root: 2.6, Keep: .9999, Eps: 1e-8}

// Kernels without exp have the bits of the specification.
func TestBits(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	h := third
	for _, tc := range []struct {
		name       string
		outs, ins  int
		run, check func(o, x [][]float32)
	}{
		{"GeluBack", 1, 2, func(o, x [][]float32) { GeluBack(o[0], x[0], x[1]) }, func(o, x [][]float32) { specGeluBack(o[0], x[0], x[1]) }},
		{"Add", 1, 1, func(o, x [][]float32) { Add(o[0], x[0]) }, func(o, x [][]float32) { specAdd(o[0], x[0]) }},
		{"Scale", 1, 0, func(o, _ [][]float32) { Scale(o[0], .3) }, func(o, _ [][]float32) { specScale(o[0], .3) }},
		{"SoftmaxBack", 1, 1, func(o, x [][]float32) { SoftmaxBack(o[0], x[0], .7) },
			func(o, x [][]float32) { specSoftmaxBack(o[0], x[0], Dot(o[0], x[0]), .7) }},
		{"AdamW", 3, 1, func(o, x [][]float32) { h.Apply(o[0], x[0], o[1], o[2]) }, func(o, x [][]float32) {
			specAdamW(o[0], x[0], o[1], o[2], float32(h.Beta1), float32(h.Alpha1), float32(h.Beta2), float32(h.Alpha2),
				float32(h.Rate), float32(h.Root), float32(h.Eps), float32(h.Keep))
		}},
	} {
		for _, n := range append(lengths, piece+100) {
			var outs, ins [][]float32
			for range tc.outs {
				outs = append(outs, random(r, n))
			}
			for range tc.ins {
				ins = append(ins, random(r, n))
			}
			if tc.name == "AdamW" {
				for i, v := range outs[2] {
					outs[2][i] = v * v
				}
			}
			eachLevel(t, func(name string) {
				var got, want [][]float32
				var checks []func(string)
				for _, o := range outs {
					g, check := guarded(t, o)
					got, want, checks = append(got, g), append(want, append([]float32{}, o...)), append(checks, check)
				}
				tc.run(got, ins)
				tc.check(want, ins)
				for i, check := range checks {
					check(tc.name)
					require.Equal(t, want[i], got[i], "%s, %s, %d elements", tc.name, name, n)
				}
			})
		}
	}
}

func TestFolds(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, n := range append(lengths, piece+100) {
		x, y, z := random(r, n), random(r, n), random(r, n)
		var want []float32
		eachLevel(t, func(name string) {
			got := []float32{Sum(x), Dot(x, y), dot3(x, y, z), squares(x, .2), Most(x)}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "%s, %d elements", name, n)
		})
		var sum, dot, d3, sq float64
		most := math.Inf(-1)
		for i := range x {
			a, b, c := float64(x[i]), float64(y[i]), float64(z[i])
			sum, dot, d3, sq, most = sum+a, dot+a*b, d3+a*b*c, sq+(a-.2)*(a-.2), max(most, a)
		}
		for i, v := range []float64{sum, dot, d3, sq, most} {
			if n == 0 && i == 4 {
				require.True(t, math.IsInf(float64(want[i]), -1))
				continue
			}
			require.InDelta(t, v, want[i], 1e-6*float64(n+1), "%d of %d elements", i, n)
		}
	}
	eachLevel(t, func(name string) {
		x := make([]float32, 40)
		for i := range x {
			x[i] = float32(math.Inf(-1))
		}
		require.True(t, math.IsInf(float64(Most(x)), -1), name)
		x[33] = -5
		require.Equal(t, float32(-5), Most(x), name)
	})
}

func TestNorm(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{1, 7, 16, 40, 384} {
		const rows = 3
		x, w, dy := random(r, rows*n), random(r, n), random(r, rows*n)
		var want [][]float32
		eachLevel(t, func(name string) {
			var got [][]float32
			var checks []func(string)
			for _, k := range []int{rows * n, rows * n, rows, rows * n, n} {
				g, check := guarded(t, make([]float32, k))
				got, checks = append(got, g), append(checks, check)
			}
			y, xh, rs, dx, dw := got[0], got[1], got[2], got[3], got[4]
			Norm(y, xh, rs, x, w)
			NormBack(xh, rs, dx, dw, dy, w)
			for _, check := range checks {
				check(name)
			}
			if want == nil {
				want = got
			}
			require.Equal(t, want, got, "%s, %d", name, n)
		})
		// against differences of the exact function
		loss := func(x, w []float64) (l float64) {
			for i := range rows {
				r := x[i*n : i*n+n]
				var mean, v float64
				for _, e := range r {
					mean += e / float64(n)
				}
				for _, e := range r {
					v += (e - mean) * (e - mean) / float64(n)
				}
				for j, e := range r {
					l += (e - mean) / math.Sqrt(v+1e-5) * w[j] * float64(dy[i*n+j])
				}
			}
			return l
		}
		if n == 1 {
			continue // of which the function is 0
		}
		x64, w64 := wide64(x), wide64(w)
		for _, tc := range []struct {
			at   []float64
			grad []float32
		}{{x64, want[3]}, {w64, want[4]}} {
			for i := range tc.at {
				v := tc.at[i]
				tc.at[i] = v + 1e-5
				up := loss(x64, w64)
				tc.at[i] = v - 1e-5
				down := loss(x64, w64)
				tc.at[i] = v
				require.InDelta(t, (up-down)/2e-5, tc.grad[i], 1e-4)
			}
		}
	}
}

func wide64(x []float32) (y []float64) {
	for _, v := range x {
		y = append(y, float64(v))
	}
	return y
}

// The specification is the exact function. Exp, which is within 1 unit in the last place, is the only part of Softmax and CrossEntropy
// whose kernels differ from it. A sum of such numbers and the quotient's rounding add to that: a weight is within 4. The target's
// gradient is a weight less 1, and is compared in units of weights near 1.
func TestSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 16))
	sizes := []int{1, 5, 15, 16, 17, 64, 65, 93, 128, 257, 1000}
	if !testing.Short() {
		sizes = append(sizes, 4096, piece+17)
	}
	worst := map[string]float64{}
	for _, n := range sizes {
		for _, spread := range []float32{.1, 5, 40} {
			x := random(r, n)
			for i := range x {
				x[i] *= spread
			}
			if n > 16 {
				x[n/3] = float32(math.Inf(-1))
			}
			target := n / 2
			var want, grad []float32
			var loss float64
			eachLevel(t, func(name string) { // the specification first
				p, okP := guarded(t, x)
				Softmax(p, .5)
				okP(name)
				g, okG := guarded(t, x)
				l := CrossEntropy(g, target)
				okG(name)
				if want == nil {
					if want, grad, loss = p, g, l; spread <= 5 { // else rounding x matters more
						exactly(t, x, target, want, grad, loss)
					}
				}
				for i := range p {
					far := ulps(want[i], p[i])
					if i == target {
						far = max(far, math.Abs(float64(grad[i]-g[i]))/0x1p-24)
					} else {
						far = max(far, ulps(grad[i], g[i]))
					}
					require.LessOrEqual(t, far, 4., "%s: %d of %d, spread %v: %v, %v for %v, %v", name, i, n, spread, p[i], g[i], want[i], grad[i])
					worst[name] = max(worst[name], far)
				}
				require.InDelta(t, loss, l, 2*0x1p-23, name)
			})
		}
	}
	t.Logf("units in the last place: %v", worst)
}

// exactly compares the weights of x/2, and the gradient and the loss of x, with those in float64.
func exactly(t *testing.T, x []float32, target int, weights, grad []float32, loss float64) {
	var half, full float64
	most := float64(Most(x))
	for _, v := range x {
		half, full = half+math.Exp(.5*(float64(v)-most)), full+math.Exp(float64(v)-most)
	}
	tolerance := 2e-6 * max(1, math.Sqrt(float64(len(x))/256)) // the sum is in float32
	for i, v := range x {
		w, g := math.Exp(.5*(float64(v)-most))/half, math.Exp(float64(v)-most)/full
		if i == target {
			g--
		}
		require.LessOrEqual(t, math.Abs(float64(weights[i])-w), tolerance*w+0x1p-147, "%d of %d", i, len(x))
		require.InDelta(t, g, grad[i], tolerance)
	}
	require.InDelta(t, math.Log(full)+most-float64(x[target]), loss, 1e-5)
}

func TestLengths(t *testing.T) {
	x, y := make([]float32, 20), make([]float32, 19)
	for _, f := range []func(){
		func() { Add(x, y) }, func() { Dot(x, y) }, func() { Gelu(x, x, y) }, func() { GeluBack(x, y, x) },
		func() { SoftmaxBack(x, y, 1) }, func() { Norm(x, x, x[:1], x, y) }, func() { NormBack(x, x[:1], x, x, x, y) },
		func() { new(AdamW).Apply(x, x, y, x) }, func() { Mul(false, false, 5, 5, 5, x, x, x) },
	} {
		require.Panics(t, f)
	}
}
