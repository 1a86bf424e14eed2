//go:build linux && cgo && nccl

package device_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// open is a Memory of device 0. The end of the test closes it, and finds all memory given back.
func open(t testing.TB) (*device.Memory, cuda.Device, *cuda.Stream) {
	t.Helper()
	gputest.Use(t)
	d, err := cuda.At(0)
	if err != nil && gputest.Real() {
		t.Skip("hardware: " + err.Error())
	}
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	m, err := device.New(d, s)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, m.Close())
		require.NoError(t, s.Close())
	})
	return m, d, s
}

var injections atomic.Int32

// failing has the fake fail as FAKE_FAIL says: it begins to count anew, since the variable has another text each time.
func failing(t *testing.T, how string) {
	t.Helper()
	t.Setenv("FAKE_FAIL", fmt.Sprintf("%s,time%d:1:1", how, injections.Add(1)))
}

func bytes[T any](s []T) []byte {
	var elem T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(elem)))
}

func alloc(t testing.TB, m *device.Memory, typ ccl.Type, n int) ccl.Buf {
	t.Helper()
	b, err := m.Alloc(typ, n)
	require.NoError(t, err)
	return b
}

func TestAllocIsZero(t *testing.T) {
	m, _, _ := open(t)
	require.Equal(t, make([]float32, 1000), get[float32](t, m, alloc(t, m, ccl.TypeFloat32, 1000)))
	require.Equal(t, make([]float64, 1000), get[float64](t, m, alloc(t, m, ccl.TypeFloat64, 1000)))
	require.Equal(t, make([]ccl.BFloat16, 1000), get[ccl.BFloat16](t, m, alloc(t, m, ccl.TypeBFloat16, 1000)))
	none := alloc(t, m, ccl.TypeFloat32, 0)
	require.NoError(t, m.Zero(none))
	require.NoError(t, m.Add(none, none))
	require.NoError(t, m.Convert(none, alloc(t, m, ccl.TypeBFloat16, 0)))
	require.NoError(t, m.AdamW(optim.AdamW{LR: 1}, 1, none, none, none, none))
	require.NoError(t, m.Get(nil, none))
	require.NoError(t, m.Free(none))
}

func TestErrors(t *testing.T) {
	m, d, s := open(t)
	x, y := alloc(t, m, ccl.TypeFloat32, 8), alloc(t, m, ccl.TypeFloat32, 8)
	short, half := x.From(0, 7), alloc(t, m, ccl.TypeBFloat16, 8)
	whole, err := cuda.Alloc[int32](d, 8)
	require.NoError(t, err)
	defer whole.Free()
	ints, host := ccl.BufOfMemory[int32](whole), ccl.BufOf(make([]float32, 8))
	freed := alloc(t, m, ccl.TypeFloat32, 8)
	require.NoError(t, m.Free(freed))
	h := optim.AdamW{LR: 1}
	closed, err := device.New(d, s)
	require.NoError(t, err)
	gone := alloc(t, closed, ccl.TypeFloat32, 8)
	require.NoError(t, closed.Close())
	for _, tc := range []struct {
		name string
		err  error
		want string
	}{
		{"lengths", m.Add(x, short), "device: Add: 8 elements, and 7"},
		{"types", m.Add(x, half), "device: Add of bfloat16 to float"},
		{"a type without kernels", m.Zero(ints), "device: Zero: there are no kernels for int32"},
		{"host memory", m.Add(x, host), "device: Add: 8 elements of float are not memory of the device, or were freed"},
		{"host memory as destination", m.Convert(host, x), "device: Convert: 8 elements of float are not memory of the device, or were freed"},
		{"too little from the host", m.Convert(x, ccl.BufOf(make([]float64, 7))), "device: Convert: 8 elements, and 7"},
		{"freed", m.Scale(freed, 2), "device: Scale: 8 elements of float are not memory of the device, or were freed"},
		{"Free of a part", m.Free(x.From(1, 8)), "device: Free of memory that Alloc has not made, or of a part of it"},
		{"Free of other memory", m.Free(ints), "device: Free of memory that Alloc has not made, or of a part of it"},
		{"Free twice", m.Free(freed), "device: Free: 8 elements of float are not memory of the device, or were freed"},
		{"step 0", m.AdamW(h, 0, x, y, x, y), "device: optim: step 0; steps are counted from 1"},
		{"AdamW's lengths", m.AdamW(h, 1, x, y, short, y), "device: AdamW: 8 parameters, but 8 gradients, and state of 7 and 8"},
		{"AdamW's types", m.AdamW(h, 1, x, half, x, y), "device: AdamW of float, bfloat16, float and float: all must be float32, or all float64"},
		{"AdamW of bfloat16", m.AdamW(h, 1, half, half, half, half), "device: AdamW of bfloat16, bfloat16, bfloat16 and bfloat16: all must be float32, or all float64"},
		{"Merge's shape", m.Merge(x, y, y, x, y, y, 2), "device: Merge of 8 values in 8 rows of 2 with 8: maxima and sums of 8, 8 and 8"},
		{"Merge's types", m.Merge(half, y, y, x, y, y, 1), "device: Merge of bfloat16; it merges float32"},
		{"Get's size", m.Get(make([]byte, 31), x), "device: Get: 31 bytes on the host, and 32 on the device"},
		{"Put's size", m.Put(half, make([]byte, 32)), "device: Put: 32 bytes on the host, and 16 on the device"},
		{"sums", m.SumsOfSquares(make([]float64, 2), x), "device: SumsOfSquares: 2 sums of 1 buffers"},
		{"closed", closed.Zero(x), "device: the Memory is closed"},
		{"closed, a copy", closed.Put(x, make([]byte, 32)), "device: Put: device: the Memory is closed"},
		{"closed, a sum", closed.SumsOfSquares(make([]float64, 1), x), "device: SumsOfSquares: device: the Memory is closed"},
		{"memory of a closed one", m.Zero(gone), "not memory of the device, or were freed"},
	} {
		require.ErrorContains(t, tc.err, tc.want, tc.name)
	}
	_, err = m.Alloc(ccl.TypeInt32, 1)
	require.EqualError(t, err, "device: Alloc of int32: there is float32, float64 and bfloat16")
	_, err = m.Alloc(ccl.TypeFloat32, 1<<40)
	require.ErrorContains(t, err, "4398046511104 bytes of device memory, of ")
	require.ErrorContains(t, err, " that are free of ")
}

func TestNew(t *testing.T) {
	gputest.Fake(t, "one device does not do")
	d, err := cuda.At(0)
	require.NoError(t, err)
	other, err := cuda.At(1)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	_, err = device.New(other, s)
	require.EqualError(t, err, "device: the stream is of device 0, not of cuda:1")
	_, err = device.New(d, nil)
	require.EqualError(t, err, "device: the stream is nil")
	free, _, err := d.Memory()
	require.NoError(t, err)
	for _, fail := range []string{"cuModuleLoadDataEx:1:209", "cuModuleGetFunction:1:500", "cuModuleGetFunction:20:500", "cudaEventCreateWithFlags:1:2", "cudaMalloc:1:2"} {
		failing(t, fail)
		_, err = device.New(d, s)
		require.ErrorContains(t, err, "device: cuda: device 0: cu", fail)
	}
	t.Setenv("FAKE_FAIL", "")
	t.Setenv("FAKE_CC", "61")
	_, err = device.New(d, s)
	require.ErrorContains(t, err, "no kernel image is available for execution on the device")
	t.Setenv("FAKE_CC", "")
	m, err := device.New(d, s)
	require.NoError(t, err)
	_, err = m.Alloc(ccl.TypeFloat32, 100) // which Close frees
	require.NoError(t, err)
	_, err = m.SumSquares(alloc(t, m, ccl.TypeFloat64, 100))
	require.NoError(t, err)
	require.NoError(t, m.Close())
	require.NoError(t, m.Close(), "again")
	left, _, err := d.Memory()
	require.NoError(t, err)
	require.Equal(t, free, left)
	require.NoError(t, s.Close())
	_, err = device.New(d, s)
	require.EqualError(t, err, "device: the stream is closed")
}

// Fence makes this memory wait for the program's stream, and Lead the program's stream for this memory.
func TestOrderOfStreams(t *testing.T) {
	m, d, s := open(t)
	if !gputest.Real() {
		t.Setenv("FAKE_DELAY_US", "20000") // of streams from here on
	}
	slow, err := d.NewStream()
	require.NoError(t, err)
	defer slow.Close()
	require.NoError(t, m.Follow(slow))
	x, y := alloc(t, m, ccl.TypeFloat32, 100), alloc(t, m, ccl.TypeFloat32, 100)
	ones := make([]float32, 100)
	for i := range ones {
		ones[i] = 1
	}
	other, err := device.New(d, slow)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, m.Convert(x, ccl.BufOf(ones)))
	require.NoError(t, s.Synchronize())
	for i := range 3 {
		require.NoError(t, other.Scale(x, 2))
		require.NoError(t, m.Fence())
		require.NoError(t, m.Add(y, x))
		require.NoError(t, m.Scale(x, .5))
		require.NoError(t, m.Lead(slow))
		require.NoError(t, other.Add(y, x))
		require.NoError(t, m.Fence())
		require.Equal(t, float32(3*(i+1)), get[float32](t, m, y)[99])
	}
}

func TestPutAndGet(t *testing.T) {
	m, _, _ := open(t)
	for _, n := range []int{1, 3, 1 << 20, 1<<20 + 1, 5<<20 + 3} { // windows are 4 MiB
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(i % 100003)
		}
		b := alloc(t, m, ccl.TypeFloat32, n+1)
		require.NoError(t, m.Put(b.From(1, n+1), bytes(x)))
		require.Equal(t, x, get[float32](t, m, b.From(1, n+1)))
		require.Equal(t, float32(0), get[float32](t, m, b)[0])
		wide := alloc(t, m, ccl.TypeFloat64, n)
		require.NoError(t, m.Convert(wide, ccl.BufOf(x)))
		for i, v := range get[float64](t, m, wide) {
			if v != float64(x[i]) {
				require.Equal(t, float64(x[i]), v, "%d of %d", i, n)
			}
		}
		require.NoError(t, m.Free(wide))
		require.NoError(t, m.Free(b))
	}
}

// A copy that fails leaves nothing on its way, and the next one works.
func TestCopyFails(t *testing.T) {
	gputest.Fake(t, "calls do not fail on demand")
	m, _, _ := open(t)
	n := 3 << 20
	b, x := alloc(t, m, ccl.TypeFloat32, n), make([]float32, n)
	require.NoError(t, m.Put(b, bytes(x)))
	for _, fail := range []string{"cudaMemcpyAsync:1:1", "cudaMemcpyAsync:3:1", "cudaEventRecord:2:1"} {
		failing(t, fail)
		require.ErrorContains(t, m.Put(b, bytes(x)), "device: Put: cuda: device 0: cuda", fail)
		failing(t, fail)
		require.ErrorContains(t, m.Get(bytes(x), b), "device: Get: cuda: device 0: cuda", fail)
		t.Setenv("FAKE_FAIL", "")
		require.NoError(t, m.Get(bytes(x), b))
	}
}

func TestNothingIsAllocated(t *testing.T) {
	m, _, s := open(t)
	x, y, z, v := alloc(t, m, ccl.TypeFloat32, 300), alloc(t, m, ccl.TypeFloat32, 300), alloc(t, m, ccl.TypeFloat32, 300), alloc(t, m, ccl.TypeFloat32, 300)
	half := alloc(t, m, ccl.TypeBFloat16, 300)
	h := optim.AdamW{LR: 1e-3}
	for name, f := range map[string]func() error{
		"Zero":       func() error { return m.Zero(x) },
		"Add":        func() error { return m.Add(x, y) },
		"Scale":      func() error { return m.Scale(x, .5) },
		"Divide":     func() error { return m.Divide(x, 2) },
		"Convert":    func() error { return m.Convert(half, x) },
		"copy":       func() error { return m.Convert(y, x) },
		"AdamW":      func() error { return m.AdamW(h, 1, x, y, z, v) },
		"SumSquares": func() error { _, err := m.SumSquares(x); return err },
		"Fence":      m.Fence,
	} {
		var err error
		n := testing.AllocsPerRun(50, func() { err = f() })
		require.NoError(t, err, name)
		require.Zero(t, n, name)
	}
	require.NoError(t, s.Synchronize())
}

var _ zero.Memory = (*device.Memory)(nil)
