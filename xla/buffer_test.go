//go:build xla && cgo && linux

package xla_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// through puts elements, has them doubled, and gets them.
func through[T ccl.Number](t *testing.T, c *xla.Client, ty hlo.Type, x, want []T) {
	t.Helper()
	b, err := xla.Put(c, x, len(x))
	require.NoError(t, err)
	require.Equal(t, ty, b.Type())
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value { v := f.Arg(ty, len(x)); return []*hlo.Value{v.Add(v)} })
	out, err := p.Run(0, b)
	require.NoError(t, err)
	got := make([]T, len(x))
	require.NoError(t, xla.Get(out[0], got))
	require.Equal(t, want, got)
	require.NoError(t, xla.FreeAll(b, out[0]))
}

func TestTypes(t *testing.T) {
	c := xlatest.Client(t)
	through(t, c, hlo.I8, []int8{-3, 5}, []int8{-6, 10})
	through(t, c, hlo.I16, []int16{-300, 5}, []int16{-600, 10})
	through(t, c, hlo.I32, []int32{-3, 1 << 29}, []int32{-6, 1 << 30})
	through(t, c, hlo.I64, []int64{-3, 1 << 60}, []int64{-6, 1 << 61})
	through(t, c, hlo.U8, []uint8{3, 100}, []uint8{6, 200})
	through(t, c, hlo.U16, []uint16{3, 30000}, []uint16{6, 60000})
	through(t, c, hlo.U32, []uint32{3, 1 << 30}, []uint32{6, 1 << 31})
	through(t, c, hlo.U64, []uint64{3, 1 << 62}, []uint64{6, 1 << 63})
	through(t, c, hlo.F32, []float32{1.5}, []float32{3})
	through(t, c, hlo.F64, []float64{1e300}, []float64{2e300})
	through(t, c, hlo.F16, []ccl.Float16{0x3c00}, []ccl.Float16{0x4000})
	through(t, c, hlo.BF16, []ccl.BFloat16{0x3f80}, []ccl.BFloat16{0x4000})
	through(t, c, hlo.F8E4M3, []ccl.Float8E4M3{0x38}, []ccl.Float8E4M3{0x40})
	through(t, c, hlo.F8E5M2, []ccl.Float8E5M2{0x3c}, []ccl.Float8E5M2{0x40})
}

func TestPutErrors(t *testing.T) {
	c := xlatest.Client(t)
	for _, tc := range []struct {
		n    int
		dims []int
		want string
	}{
		{3, []int{2}, "xla: put: 3 elements for f32[2], which has 2"},
		{2, nil, "xla: put: 2 elements for f32[], which has 1"},
		{0, []int{-1}, "f32[-1]: a dimension is negative"},
		{0, []int{1 << 40, 1 << 40}, "too large"},
		{1, slices.Repeat([]int{1}, 17), "xla: 17 dimensions: an array has at most 16"},
	} {
		_, err := xla.Put(c, make([]float32, tc.n), tc.dims...)
		require.ErrorContains(t, err, tc.want)
	}
	b := put(t, c, []float32{1, 2}, 2)
	require.ErrorContains(t, xla.Get(b, make([]float32, 3)), "f32[2], which has 2 elements, into a slice of 3")
	require.ErrorContains(t, xla.Get(b, make([]int32, 2)), "f32[2] into a slice of i32")
	_, err := xla.Slice[int32](b)
	require.ErrorContains(t, err, "f32[2] as elements of i32")
	_, err = xla.MemoryOf[float32](b)
	require.ErrorContains(t, err, "is memory of the host: use Slice")
	require.NoError(t, b.Free())
	for _, err := range []error{xla.Get[float32](nil, nil), (*xla.Buffer)(nil).Wait()} {
		require.ErrorIs(t, err, xla.ErrClosed)
	}
	require.NoError(t, (*xla.Buffer)(nil).Free())
	many := put(t, c, []float32{1, 2}, append(slices.Repeat([]int{1}, 15), 2)...)
	require.Equal(t, []float32{1, 2}, get(t, many))
	require.NoError(t, many.Free())
	empty := put(t, c, nil, 0, 3)
	require.NoError(t, xla.Get(empty, []float32{}))
	require.NoError(t, empty.Free())
}

// aligned is n elements that begin at a multiple of 64 bytes.
func aligned(n int) []float32 {
	s := make([]float32, n+16)
	for uintptr(unsafe.Pointer(&s[0]))%64 != 0 {
		s = s[1:]
	}
	return s[:n]
}

// A view is the memory itself: what is written there later, the program reads.
func TestView(t *testing.T) {
	c := xlatest.Client(t)
	s := aligned(6)
	v, err := xla.ViewSlice(c, s, 2, 3)
	require.NoError(t, err)
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value { return []*hlo.Value{f.Arg(hlo.F32, 2, 3).SumAll()} })
	for i := range 3 {
		s[5] = float32(i)
		out, err := p.Run(0, v)
		require.NoError(t, err)
		require.Equal(t, []float32{float32(i)}, get(t, out[0]))
		require.NoError(t, out[0].Free())
	}
	require.NoError(t, v.Free())
	_, err = xla.ViewSlice(c, aligned(7)[1:], 2, 3)
	require.ErrorContains(t, err, "a multiple of 64")
	_, err = xla.ViewSlice(c, s, 7)
	require.ErrorContains(t, err, "xla: view: 6 elements for f32[7], which has 7")
	_, err = xla.ViewMemory[float32](c, nowhere{}, 2)
	require.ErrorContains(t, err, "memory of device 5 is no memory of cpu 0")
	_, err = xla.ViewMemory[float32](c, nil, 2)
	require.EqualError(t, err, "xla: view: no memory")
}

// A program that has begun keeps the slice that it reads, also if the view is freed and nothing else has it; then it is let go.
func TestViewKept(t *testing.T) {
	c := xlatest.Client(t)
	const n = 300
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value { // lasts a while before it reads all of x again
		x := f.Arg(hlo.F32, n, n)
		y := x
		for range 20 {
			y = hlo.Dot(y, x, []int{1}, []int{0}, nil, nil).MulC(1. / n)
		}
		return []*hlo.Value{y}
	})
	before := xla.Viewed()
	out := func() []*xla.Buffer {
		s := aligned(n * n)
		for i := range s {
			s[i] = 1
		}
		v, err := xla.ViewSlice(c, s, n, n)
		require.NoError(t, err)
		require.Equal(t, before+1, xla.Viewed())
		_, err = p.Run(1, v)
		require.ErrorContains(t, err, "argument 0 of 1: xla: a view of f32[300,300], made at buffer_test.go:")
		require.ErrorContains(t, err, "cannot be donated: its memory is not XLA's")
		out, err := p.Run(0, v)
		require.NoError(t, err)
		require.NoError(t, v.Free())
		return out
	}()
	for range 3 {
		runtime.GC()
		for i, s := 0, aligned(n*n); i < len(s); i++ { // what would take its place
			s[i] = -7
		}
	}
	for i, x := range get(t, out[0]) {
		require.InDelta(t, 1, x, 1e-3, i)
	}
	require.NoError(t, out[0].Free())
	for xla.Viewed() > before {
		runtime.Gosched()
	}
}

type nowhere struct{}

func (nowhere) Ptr() (uintptr, bool) { return 64, true }
func (nowhere) Device() int          { return 5 }
func (nowhere) Len() int             { return 2 }
func (nowhere) Elem() (x float32)    { return }

// Ranks reduce in XLA's own buffers, which a program has only begun to compute, and the next program reads what they have.
func TestBuf(t *testing.T) {
	xlatest.Path(t)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		client := xlatest.Client(t)
		const n = 300
		p := compiled(t, client, func(f *hlo.Func) []*hlo.Value { // lasts a while
			x := f.Arg(hlo.F32, n, n)
			y := x
			for range 8 {
				y = hlo.Dot(y, x, []int{1}, []int{0}, nil, nil).MulC(1. / n)
			}
			return []*hlo.Value{y}
		})
		ones := make([]float32, n*n)
		for i := range ones {
			ones[i] = 1
		}
		x := put(t, client, ones, n, n)
		stream := ccl.NewHostStream()
		defer stream.Close()
		for i := range 10 {
			out, err := p.Run(0, x)
			require.NoError(t, err)
			buf, err := xla.BufOn[float32](out[0], stream)
			if i%2 == 0 {
				buf, err = xla.Buf[float32](out[0])
			}
			require.NoError(t, err)
			require.NoError(t, c.On(stream).AllReduce(buf, ccl.InPlace(), ccl.Sum).Wait(context.Background()))
			again, err := p.Run(0, out[0])
			require.NoError(t, err)
			got := get(t, again[0])
			require.InDelta(t, 512, got[0], 1e-2) // 2 to the power 9
			require.InDelta(t, 512, got[n*n-1], 1e-2)
			require.NoError(t, xla.FreeAll(out[0], again[0]))
		}
		require.NoError(t, x.Free())
	})
}

// stream is one with a handle.
type stream uintptr

func (s stream) Handle() (uintptr, bool) { return uintptr(s), s > 0 }

// With PJRT's Stream extension the stream waits; without a stream the caller does, and always before the address is asked for.
func TestBufOn(t *testing.T) {
	p, err := xla.Open(built(t, "-DSTREAM"))
	require.NoError(t, err)
	c, err := p.NewClient(nil)
	require.NoError(t, err)
	require.Equal(t, 3, c.Device())
	require.False(t, c.OnHost())
	require.True(t, c.Named("a test"))
	require.Contains(t, c.String(), "cuda (a test's), PJRT 0.69")
	b := put(t, c, []float32{1, 2, 3, 4}, 4)
	_, err = xla.BufOn[float32](b, stream(7))
	require.NoError(t, err)
	_, err = xla.BufOn[float32](b, nil)
	require.EqualError(t, err, "xla: BufOn of no stream")
	_, err = xla.BufOn[float32](b, stream(0))
	require.NoError(t, err)
	buf, err := xla.Buf[float32](b)
	require.NoError(t, err)
	told, err := c.Memory()
	require.NoError(t, err)
	require.EqualValues(t, 27_3_1_3_1_3, told.InUse, "what was called: see testdata/plugin.c")
	at, ok := buf.Addr()
	require.True(t, ok)
	require.NotZero(t, at)
	m, err := xla.MemoryOf[float32](b)
	require.NoError(t, err)
	require.Equal(t, 4, m.Len())
	require.Equal(t, 3, m.Device())
	v, err := xla.ViewSlice(c, aligned(4), 4)
	require.ErrorContains(t, err, "cannot be read in place by cuda: use Put")
	require.Nil(t, v)
	_, err = xla.Slice[float32](b)
	require.ErrorContains(t, err, "is memory of cuda: use Get")
	require.NoError(t, b.Free())
	_, ok = m.Ptr()
	require.False(t, ok, "freed memory has no address")
	require.NoError(t, c.Close())
}
