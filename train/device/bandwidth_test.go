//go:build linux && cgo && nccl

package device_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/optim"
)

// leastBandwidth is what a kernel has of a copy on the device, at least, in bytes read and written per second.
const leastBandwidth = .85

// On a GPU the kernels are as fast as its memory.
func TestBandwidth(t *testing.T) {
	if !gputest.Real() {
		t.Skip("hardware: GOCCL_TEST_GPU is not 1")
	}
	m, d, s := open(t)
	const n = 256 << 20 // elements; 1 GiB of float32
	f := func() ccl.Buf { return alloc(t, m, ccl.TypeFloat32, n) }
	p, g, avg, sq := f(), f(), f(), f()
	half, half2 := alloc(t, m, ccl.TypeBFloat16, n), alloc(t, m, ccl.TypeBFloat16, n)
	rows := alloc(t, m, ccl.TypeFloat32, n/128)
	raw := func(b ccl.Buf) *cuda.Mem[float32] {
		at, _ := b.Addr()
		x, err := cuda.MemOf[float32](d, at, b.Len())
		require.NoError(t, err)
		return x
	}
	to, from := raw(p), raw(g)
	start, end := event(t, d), event(t, d)
	// rate is the median of several windows, in bytes a second.
	rate := func(bytes float64, f func() error) float64 {
		const calls = 5
		var all []float64
		for window := range 6 {
			require.NoError(t, start.Record(s))
			for range calls {
				require.NoError(t, f())
			}
			require.NoError(t, end.Record(s))
			require.NoError(t, end.Synchronize())
			took, err := end.Since(start)
			require.NoError(t, err)
			if window > 0 {
				all = append(all, calls*bytes/took.Seconds())
			}
		}
		slices.Sort(all)
		return all[len(all)/2]
	}
	began := time.Now()
	copied := rate(8*n, func() error { return to.CopyOn(s, from) })
	name, err := d.Name()
	require.NoError(t, err)
	t.Logf("%s: a copy on the device moves %.0f GB/s", name, copied/1e9)
	h := optim.AdamW{LR: 1e-3, Decay: .1}
	for _, tc := range []struct {
		name  string
		bytes float64 // read and written, of an element
		f     func() error
	}{
		{"Zero float32", 4, func() error { return m.Zero(p) }},
		{"Zero bfloat16", 2, func() error { return m.Zero(half) }},
		{"Add float32", 12, func() error { return m.Add(p, g) }},
		{"Add bfloat16", 6, func() error { return m.Add(half, half2) }},
		{"Scale float32", 8, func() error { return m.Scale(p, .5) }},
		{"Scale bfloat16", 4, func() error { return m.Scale(half, .5) }},
		{"Divide float32", 8, func() error { return m.Divide(p, 2) }},
		{"Convert float32 to bfloat16", 6, func() error { return m.Convert(half, g) }},
		{"Convert bfloat16 to float32", 6, func() error { return m.Convert(p, half2) }},
		{"Convert float32 to float32", 8, func() error { return m.Convert(p, g) }},
		{"Convert bfloat16 to bfloat16", 4, func() error { return m.Convert(half, half2) }},
		{"AdamW float32", 28, func() error { return m.AdamW(h, 3, p, g, avg, sq) }},
		{"SumsOfSquares float32", 12, func() error { return m.SumsOfSquares(make([]float64, 3), g, g, g) }},
		{"SumsOfSquares bfloat16", 6, func() error { return m.SumsOfSquares(make([]float64, 3), half2, half2, half2) }},
		{"Merge", 12, func() error { return m.Merge(p, rows, rows, g, rows, rows, 128) }},
	} {
		got := rate(tc.bytes*n, tc.f)
		t.Logf("%-28s %6.0f GB/s, %.2f of a copy", tc.name, got/1e9, got/copied)
		if got < leastBandwidth*copied {
			t.Errorf("%s: %.2f of a copy, and it should be %.2f", tc.name, got/copied, leastBandwidth)
		}
	}
	// What is not aligned, as parameters in a unit are not.
	got := rate(28*(n-8), func() error {
		return m.AdamW(h, 3, p.From(1, n-7), g.From(3, n-5), avg.From(1, n-7), sq.From(1, n-7))
	})
	t.Logf("%-28s %6.0f GB/s, %.2f of a copy", "AdamW, not aligned", got/1e9, got/copied)
	t.Logf("%.1f s", time.Since(began).Seconds())
}

func event(t *testing.T, d cuda.Device) *cuda.Event {
	t.Helper()
	e, err := d.NewEvent()
	require.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	return e
}
