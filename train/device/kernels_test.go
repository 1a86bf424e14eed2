//go:build linux && cgo && nccl

package device_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/internal/vec"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/sp"
	"github.com/goccl/goccl/train/zero"
)

// lengths are about those of a thread, a block, a grid of two, and of many.
var lengths = []int{1, 7, 8, 255, 256, 2047, 2048, 2049, 4099, 70001}

// places are where the first element lies: at the start of memory, and where nothing is aligned.
var places = []int{0, 1, 3}

// numbers are n values of every size, and what is odd about floats among them.
func numbers[T zero.Float](seed uint64, n int) []T {
	r := rand.New(rand.NewPCG(seed, 1))
	odd := []float64{0, math.Copysign(0, -1), 1, math.Inf(1), math.Inf(-1), math.NaN(), 1e-40, -3e-39, 65504, 3.4e38, 1 + 1./256, 1 + 3./256}
	x := make([]float64, n)
	for i := range x {
		x[i] = r.NormFloat64() * math.Pow(2, float64(r.IntN(40)-20))
		if r.IntN(8) == 0 {
			x[i] = odd[r.IntN(len(odd))]
		}
	}
	s := make([]T, n)
	vec.Convert(ccl.BufOf(s), ccl.BufOf(x))
	return s
}

// guarded is a copy of x on the device, at that place of memory with something before and behind it.
type guarded[T zero.Float] struct {
	m   *device.Memory
	all ccl.Buf
	buf ccl.Buf
	was []T
	at  int
}

func put[T zero.Float](t *testing.T, m *device.Memory, x []T, at int) guarded[T] {
	t.Helper()
	g := guarded[T]{m: m, was: numbers[T](99, at+len(x)+5), at: at}
	copy(g.was[at:], x)
	var err error
	g.all, err = m.Alloc(ccl.TypeOf[T](), len(g.was))
	require.NoError(t, err)
	t.Cleanup(func() { m.Free(g.all) })
	require.NoError(t, m.Convert(g.all, ccl.BufOf(g.was)))
	g.buf = g.all.From(at, at+len(x))
	return g
}

// check makes sure that the elements are want, and that nothing else has changed.
func (g guarded[T]) check(t *testing.T, want []T, what string) {
	t.Helper()
	got := get[T](t, g.m, g.all)
	same(t, g.was[:g.at], got[:g.at], what+", before")
	same(t, want, got[g.at:g.at+len(want)], what)
	same(t, g.was[g.at+len(want):], got[g.at+len(want):], what+", behind")
}

func get[T zero.Float](t *testing.T, m *device.Memory, b ccl.Buf) []T {
	t.Helper()
	s := make([]T, b.Len())
	require.NoError(t, m.Get(bytes(s), b))
	return s
}

// same compares bits. One NaN is as good as another.
func same[T zero.Float](t *testing.T, want, got []T, what string) {
	t.Helper()
	w, g := make([]float64, len(want)), make([]float64, len(got))
	vec.Convert(ccl.BufOf(w), ccl.BufOf(want))
	vec.Convert(ccl.BufOf(g), ccl.BufOf(got))
	require.Len(t, g, len(w), what)
	for i := range w {
		if math.Float64bits(w[i]) != math.Float64bits(g[i]) && !(math.IsNaN(w[i]) && math.IsNaN(g[i])) {
			require.Failf(t, what, "element %d of %d is %v (%#x), and should be %v (%#x)", i, len(w), g[i], math.Float64bits(g[i]), w[i], math.Float64bits(w[i]))
		}
	}
}

// each runs f for every length and place.
func each(t *testing.T, f func(t *testing.T, m *device.Memory, n, at int, what string)) {
	m, _, _ := open(t)
	for _, n := range lengths {
		for _, at := range places {
			f(t, m, n, at, fmt.Sprintf("%d elements at %d", n, at))
		}
	}
}

func TestArithmetic(t *testing.T) {
	t.Run("float32", arithmetic[float32])
	t.Run("float64", arithmetic[float64])
	t.Run("bfloat16", arithmetic[ccl.BFloat16])
}

func arithmetic[T zero.Float](t *testing.T) {
	each(t, func(t *testing.T, m *device.Memory, n, at int, what string) {
		x, y := numbers[T](1, n), numbers[T](2, n)
		for name, op := range map[string]struct{ device, host func(dst, src ccl.Buf) error }{
			"Zero":   {func(d, _ ccl.Buf) error { return m.Zero(d) }, func(d, _ ccl.Buf) error { vec.Zero(d); return nil }},
			"Add":    {m.Add, func(d, s ccl.Buf) error { vec.Add(d, s); return nil }},
			"Scale":  {func(d, _ ccl.Buf) error { return m.Scale(d, 1./3) }, func(d, _ ccl.Buf) error { vec.Scale(d, 1./3); return nil }},
			"Divide": {func(d, _ ccl.Buf) error { return m.Divide(d, 7) }, func(d, _ ccl.Buf) error { vec.Divide(d, 7); return nil }},
			"copy":   {m.Convert, func(d, s ccl.Buf) error { vec.Convert(d, s); return nil }},
		} {
			from := (at + 1) % 4
			if at == 0 { // both are aligned, as are those of a kernel that reads words
				from = 0
			}
			dst, src := put(t, m, x, at), put(t, m, y, from)
			want := append([]T{}, x...)
			require.NoError(t, op.host(ccl.BufOf(want), ccl.BufOf(y)))
			require.NoError(t, op.device(dst.buf, src.buf), name)
			dst.check(t, want, name+", "+what)
			src.check(t, y, name+"'s source, "+what)
		}
	})
}

func TestConvert(t *testing.T) {
	t.Run("float32", func(t *testing.T) { convert[float32, float64](t); convert[float32, ccl.BFloat16](t) })
	t.Run("float64", func(t *testing.T) { convert[float64, float32](t); convert[float64, ccl.BFloat16](t) })
	t.Run("bfloat16", func(t *testing.T) { convert[ccl.BFloat16, float32](t); convert[ccl.BFloat16, float64](t) })
}

func convert[D, S zero.Float](t *testing.T) {
	each(t, func(t *testing.T, m *device.Memory, n, at int, what string) {
		x, want := numbers[S](3, n), make([]D, n)
		vec.Convert(ccl.BufOf(want), ccl.BufOf(x))
		dst, src := put(t, m, make([]D, n), at), put(t, m, x, (at+1)%4)
		require.NoError(t, m.Convert(dst.buf, src.buf))
		dst.check(t, want, what)
		host := put(t, m, make([]D, n), at)
		require.NoError(t, m.Convert(host.buf, ccl.BufOf(x)))
		host.check(t, want, what+", from the host")
	})
}

// sumOfSquares is what the device computes, as kernels.cu says.
func sumOfSquares[T zero.Float](x []T) float64 {
	const lanes = 1 << 17
	v := make([]float64, len(x))
	vec.Convert(ccl.BufOf(v), ccl.BufOf(x))
	part := make([]float64, min(lanes, len(v)))
	for t := range part {
		var s [4]float64
		for at, j := t, 0; at < len(v); at, j = at+lanes, j+1 {
			s[j%4] += float64(v[at] * v[at])
		}
		part[t] = (s[0] + s[1]) + (s[2] + s[3])
	}
	fold := func(width int) {
		out := make([]float64, width)
		for t := range out {
			out[t] = part[t]
			for at := t + width; at < len(part); at += width {
				out[t] += part[at]
			}
		}
		part = out
	}
	if len(part) > 4096 {
		fold(4096)
	}
	if len(part) > 64 {
		fold(64)
	}
	fold(1)
	return part[0]
}

func TestSumSquares(t *testing.T) {
	t.Run("float32", sums[float32])
	t.Run("float64", sums[float64])
	t.Run("bfloat16", sums[ccl.BFloat16])
}

func sums[T zero.Float](t *testing.T) {
	m, _, _ := open(t)
	var bufs []ccl.Buf
	var want []float64
	for i, n := range []int{1, 3, 63, 64, 65, 257, 4096, 4097, 5000, 1<<17 - 1, 1 << 17, 1<<17 + 1, 1<<20 + 77, 2<<20 + 1, 3<<20 + 5, 5<<20 + 33} {
		x := make([]T, n)
		r, y := rand.New(rand.NewPCG(uint64(n), 4)), make([]float64, n)
		for k := range y {
			y[k] = r.NormFloat64()
		}
		vec.Convert(ccl.BufOf(x), ccl.BufOf(y))
		b := put(t, m, x, places[i%3])
		got, err := m.SumSquares(b.buf)
		require.NoError(t, err)
		require.Equal(t, sumOfSquares(x), got, "%d elements", n)
		require.InEpsilon(t, vec.SumSquares(ccl.BufOf(x)), got, 1e-12, "%d elements", n)
		bufs, want = append(bufs, b.buf), append(want, got)
	}
	none := ccl.BufOfMemory[T](nil)
	bufs, want = append(bufs, none), append(want, 0)
	got := make([]float64, len(bufs))
	require.NoError(t, m.SumsOfSquares(got, bufs...))
	require.Equal(t, want, got)

	many := make([]ccl.Buf, 200) // more than there is room for at first
	for i := range many {
		many[i] = bufs[i%3]
	}
	got = make([]float64, len(many))
	require.NoError(t, m.SumsOfSquares(got, many...))
	for i := range got {
		require.Equal(t, want[i%3], got[i])
	}
	for _, odd := range []float64{math.Inf(1), math.NaN()} {
		x := make([]T, 300)
		vec.Convert(ccl.BufOf(x[299:]), ccl.BufOf([]float64{odd}))
		sum, err := m.SumSquares(put(t, m, x, 1).buf)
		require.NoError(t, err)
		require.True(t, math.IsInf(sum, 1) || math.IsNaN(sum) && math.IsNaN(odd), "%v", sum)
	}
}

func TestAdamW(t *testing.T) {
	t.Run("float32", adamw[float32])
	t.Run("float64", adamw[float64])
}

func adamw[T float32 | float64](t *testing.T) {
	h := optim.AdamW{LR: 3e-3, Beta2: .95, Decay: .1}
	each(t, func(t *testing.T, m *device.Memory, n, at int, what string) {
		p, mom, sq := numbers[T](5, n), make([]T, n), make([]T, n)
		dp, dm, dv := put(t, m, p, at), put(t, m, mom, (at+1)%4), put(t, m, sq, (at+2)%4)
		for step := 1; step <= 3; step++ {
			g := numbers[T](uint64(5+step), n)
			dg := put(t, m, g, (at+3)%4)
			require.NoError(t, optim.Apply(h, step, p, g, mom, sq))
			require.NoError(t, m.AdamW(h, step, dp.buf, dg.buf, dm.buf, dv.buf))
			dg.check(t, g, what)
		}
		dp.check(t, p, "parameters, "+what)
		dm.check(t, mom, "first moments, "+what)
		dv.check(t, sq, "second moments, "+what)
	})
}

// decay is that of kernels.cu.
func decay(x float32) float32 {
	if x < -87 {
		return 0
	}
	mul := func(a, b float32) float32 { return float32(a * b) }
	n := float32(mul(x, 1.44269504)+12582912) - 12582912
	r := float32(x-mul(n, 0.693359375)) - mul(n, -2.12194440e-4)
	y := float32(1.9875691500e-4)
	for _, c := range []float32{1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1} {
		y = mul(y, r) + c
	}
	y = float32(mul(mul(y, r), r)+r) + 1
	return mul(y, math.Float32frombits(uint32(int32(n)+127)<<23))
}

func TestDecay(t *testing.T) {
	worst := 0.
	for x := float32(0); x > -87; x -= .00371 {
		exact := math.Exp(float64(x))
		unit := math.Ldexp(1, int(math.Floor(math.Log2(exact)))-23)
		worst = max(worst, math.Abs(float64(decay(x))-exact)/unit)
	}
	require.Less(t, worst, 2.)
	require.Equal(t, float32(1), decay(0))
}

func TestMerge(t *testing.T) {
	m, _, _ := open(t)
	inf := float32(math.Inf(-1))
	for _, shape := range [][2]int{{1, 1}, {5, 64}, {129, 33}, {3000, 3}, {1<<20 + 5, 1}} {
		rows, dim := shape[0], shape[1]
		r := rand.New(rand.NewPCG(uint64(rows), 7))
		block := func() (out, max, sum []float32) {
			out, max, sum = make([]float32, rows*dim), make([]float32, rows), make([]float32, rows)
			for i := range rows {
				if max[i] = inf; r.IntN(5) == 0 { // all is masked
					continue
				}
				max[i], sum[i] = 20*float32(r.NormFloat64()), 1+9*r.Float32()
				for d := range dim {
					out[i*dim+d] = float32(r.NormFloat64())
				}
			}
			return
		}
		out, most, sum := block()
		other, otherMost, otherSum := block()
		a, b, c := put(t, m, out, 0), put(t, m, most, 1), put(t, m, sum, 2)
		x, y, z := put(t, m, other, 3), put(t, m, otherMost, 0), put(t, m, otherSum, 1)
		require.NoError(t, m.Merge(a.buf, b.buf, c.buf, x.buf, y.buf, z.buf, dim))
		exact := make([]float64, len(out))
		for i := range rows {
			top := max(most[i], otherMost[i])
			weight := func(v float32) (float32, float64) {
				if v == top {
					return 1, 1
				}
				return decay(v - top), math.Exp(float64(v) - float64(top))
			}
			wa, ea := weight(most[i])
			wb, eb := weight(otherMost[i])
			for d := i * dim; d < (i+1)*dim; d++ {
				exact[d] = float64(out[d])*ea + float64(other[d])*eb
				out[d] = float32(out[d]*wa) + float32(other[d]*wb)
			}
			sum[i] = float32(sum[i]*wa) + float32(otherSum[i]*wb)
			most[i] = top
		}
		what := fmt.Sprint(rows, " rows of ", dim)
		a.check(t, out, what)
		b.check(t, most, what)
		c.check(t, sum, what)
		for i := range exact {
			require.InDelta(t, exact[i], out[i], 1e-5*(1+math.Abs(exact[i])), what)
		}
	}
}

// Merging what two blocks of keys give is what sp.Softmax makes of the keys one block after the other.
func TestMergeIsRingAttention(t *testing.T) {
	m, _, _ := open(t)
	const rows, keys, dim = 9, 7, 5
	r := rand.New(rand.NewPCG(1, 8))
	both := sp.NewSoftmax(rows)
	want := make([]float32, rows*dim)
	var blocks [2][3]guarded[float32]
	for i := range blocks {
		scores, values := make([]float32, rows*keys), make([]float32, keys*dim)
		for k := range scores {
			scores[k] = 4 * float32(r.NormFloat64())
		}
		for k := range values {
			values[k] = float32(r.NormFloat64())
		}
		one, out := sp.NewSoftmax(rows), make([]float32, rows*dim)
		for _, to := range []struct {
			s   *sp.Softmax
			out []float32
		}{{both, want}, {one, out}} {
			w := append([]float32{}, scores...)
			to.s.Add(w, keys, to.out, dim)
			for row := range rows {
				for k := range keys {
					for d := range dim {
						to.out[row*dim+d] += w[row*keys+k] * values[k*dim+d]
					}
				}
			}
		}
		blocks[i] = [3]guarded[float32]{put(t, m, out, 0), put(t, m, one.Max, 0), put(t, m, one.Sum, 0)}
	}
	a, b := blocks[0], blocks[1]
	require.NoError(t, m.Merge(a[0].buf, a[1].buf, a[2].buf, b[0].buf, b[1].buf, b[2].buf, dim))
	require.Equal(t, both.Max, get[float32](t, m, a[1].buf))
	require.InDeltaSlice(t, both.Sum, get[float32](t, m, a[2].buf), 1e-5)
	require.InDeltaSlice(t, want, get[float32](t, m, a[0].buf), 1e-5)
}
