//go:build oneccl

package xpu_test

import (
	"fmt"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xpu"
)

// device is device 0, where the shim is there and SYCL has one.
func device(t *testing.T) xpu.Device {
	t.Helper()
	if os.Getenv("GOCCL_XPU_LIB") == "" {
		t.Skip("GOCCL_XPU_LIB names no SYCL shim: make vendor-oneccl builds one and runs this")
	}
	d, err := xpu.At(0)
	require.NoError(t, err)
	return d
}

func TestDevice(t *testing.T) {
	d := device(t)
	n, err := xpu.Count()
	require.NoError(t, err)
	require.Positive(t, n)
	all, err := xpu.Devices()
	require.NoError(t, err)
	require.Len(t, all, n)
	require.Equal(t, d, all[0])
	require.Equal(t, "xpu:0", d.String())
	name, err := d.Name()
	require.NoError(t, err)
	require.NotEmpty(t, name)
	_, total, err := d.Memory()
	require.NoError(t, err)
	require.Greater(t, total, uint64(1<<20))
	_, err = d.PCI()
	require.NoError(t, err)

	_, err = xpu.At(n)
	require.ErrorContains(t, err, fmt.Sprintf("xpu: no device %d: there ", n))
	require.ErrorContains(t, err, name)
	_, err = xpu.At(-1)
	require.ErrorContains(t, err, "xpu: no device -1: ")
	first, err := xpu.Local(0, n)
	require.NoError(t, err)
	require.Equal(t, d, first)
	if gpu, err := d.GPU(); err == nil && gpu { // a CPU is for all
		_, err = xpu.Local(n, n+1)
		require.ErrorContains(t, err, fmt.Sprintf("xpu: local rank %d of %d has no device of its own", n, n+1))
	}
	_, err = xpu.Local(2, 2)
	require.ErrorContains(t, err, "xpu: local rank 2 of 2: a local rank is at least 0")
}

func TestMem(t *testing.T) {
	d := device(t)
	in, out := []float32{1, 2, 3, 4, 5}, make([]float32, 5)
	m, err := xpu.Alloc[float32](d, 5)
	require.NoError(t, err)
	require.Equal(t, 5, m.Len())
	require.Zero(t, m.Device())
	require.NoError(t, m.Put(in))
	require.NoError(t, m.Get(out))
	require.Equal(t, in, out)
	part, err := m.Part(1, 3)
	require.NoError(t, err)
	require.NoError(t, part.Set(0))
	require.NoError(t, m.Get(out))
	require.Equal(t, []float32{1, 0, 0, 4, 5}, out)

	require.EqualError(t, m.Put(make([]float32, 6)), "xpu: Put of 6 elements, but the memory has 5")
	require.EqualError(t, part.Get(make([]float32, 3)), "xpu: Get of 3 elements, but the memory has 2")
	_, err = m.Part(3, 2)
	require.EqualError(t, err, "xpu: [3:2] of memory of 5 elements")
	_, err = m.Slice()
	require.ErrorContains(t, err, "xpu: 20 bytes of device memory cannot be read by the host")
	require.ErrorContains(t, part.Free(), "only whole memory can be freed, not a part; the whole was made at device_test.go:")
	_, err = xpu.Alloc[float64](d, -1)
	require.EqualError(t, err, "xpu: device 0: -1 elements of 8 bytes is not a valid size")
	_, err = xpu.Alloc[float64](d, math.MaxInt/8)
	require.ErrorContains(t, err, "bytes of device memory, of ")

	require.NoError(t, m.Free())
	_, ok := m.Ptr()
	require.False(t, ok)
	_, ok = part.Ptr()
	require.False(t, ok)
	for _, err := range []error{m.Free(), m.Put(in), m.Get(out), m.Set(1), part.Get(out[:1])} {
		require.ErrorIs(t, err, xpu.ErrClosed)
		require.ErrorContains(t, err, "xpu: device 0: 20 bytes of device memory, made at device_test.go:")
	}

	none, err := xpu.Alloc[int8](d, 0)
	require.NoError(t, err)
	p, ok := none.Ptr()
	require.True(t, ok)
	require.Zero(t, p)
	require.NoError(t, none.Put(nil))
	require.NoError(t, none.Free())

	shared, err := xpu.AllocManaged[int32](d, 4)
	require.NoError(t, err)
	s, err := shared.Slice()
	require.NoError(t, err)
	copy(s, []int32{1, 2, 3, 4})
	got := make([]int32, 4)
	require.NoError(t, shared.Get(got))
	require.Equal(t, []int32{1, 2, 3, 4}, got)
	require.NoError(t, shared.Free())
}

func TestQueue(t *testing.T) {
	d := device(t)
	q, err := d.NewQueue()
	require.NoError(t, err)
	_, ok := q.Handle()
	require.True(t, ok)
	const n = 1 << 20
	h, err := xpu.AllocHost[int32](d, n)
	require.NoError(t, err)
	a, err := xpu.Alloc[int32](d, n)
	require.NoError(t, err)
	b, err := xpu.Alloc[int32](d, n)
	require.NoError(t, err)
	for i := range h.Slice() {
		h.Slice()[i] = int32(i)
	}
	start, err := d.NewEvent()
	require.NoError(t, err)
	end, err := d.NewEvent()
	require.NoError(t, err)
	done, err := start.Query()
	require.NoError(t, err)
	require.True(t, done, "never recorded")

	// All in the order of the queue, with no wait in between.
	require.NoError(t, start.Record(q))
	require.NoError(t, a.PutOn(q, h))
	require.NoError(t, b.SetOn(q, 0xff))
	require.NoError(t, b.CopyOn(q, a))
	require.NoError(t, a.SetOn(q, 0))
	require.NoError(t, end.Record(q))
	other, err := d.NewQueue()
	require.NoError(t, err)
	require.NoError(t, other.WaitEvent(end))
	back, err := xpu.AllocHost[int32](d, n)
	require.NoError(t, err)
	require.NoError(t, b.GetOn(other, back))
	require.NoError(t, other.Wait(t.Context()))
	require.Equal(t, h.Slice(), back.Slice())
	require.NoError(t, end.Wait(t.Context()))
	require.NoError(t, end.Synchronize())
	took, err := end.Since(start)
	require.NoError(t, err)
	require.Positive(t, took)
	require.Less(t, took, time.Minute)
	require.NoError(t, q.Synchronize())
	zero := make([]int32, n)
	got := make([]int32, n)
	require.NoError(t, a.Get(got))
	require.Equal(t, zero, got)

	handle, _ := q.Handle()
	borrowed, err := d.QueueOf(handle)
	require.NoError(t, err)
	require.NoError(t, borrowed.Close())
	done, err = q.Query()
	require.NoError(t, err)
	require.True(t, done)
	require.NoError(t, q.Close())
	require.ErrorIs(t, q.Close(), xpu.ErrClosed)
	require.ErrorIs(t, q.Synchronize(), xpu.ErrClosed)
	require.ErrorIs(t, a.PutOn(q, h), xpu.ErrClosed)
	_, ok = q.Handle()
	require.False(t, ok)
	require.NoError(t, end.Close())
	require.ErrorIs(t, end.Record(other), xpu.ErrClosed)
	for _, f := range []func() error{start.Close, other.Close, h.Free, back.Free, a.Free, b.Free} {
		require.NoError(t, f())
	}
}

// A nil dereference is still recovered once SYCL and its OpenCL are there.
func TestNilDereference(t *testing.T) {
	d := device(t)
	m, err := xpu.Alloc[int8](d, 1)
	require.NoError(t, err)
	require.NoError(t, m.Put([]int8{1}))
	require.NoError(t, m.Free())
	recovered := func() (p any) {
		defer func() { p = recover() }()
		var p8 *int8
		return *p8
	}()
	require.ErrorContains(t, recovered.(error), "nil pointer dereference")
}
