package lent_test

import (
	"errors"
	"math"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lent"
)

func TestMemory(t *testing.T) {
	host := []int32{1, 2, 3, 4, 5}
	at := uintptr(unsafe.Pointer(&host[0]))
	failed := errors.New("the driver is gone")
	m := lent.NewMemory[int32](lent.New("rocm", 2, "20 bytes of managed memory", at, func(p uintptr) error {
		require.Equal(t, at, p)
		return failed
	}), len(host), true)
	require.Equal(t, 5, m.Len)
	require.Equal(t, at, m.Addr)
	s, err := lent.Elements[int32](&m)
	require.NoError(t, err)
	require.Equal(t, host, s)
	_, bytes, err := m.Use("Put", 5)
	require.NoError(t, err)
	require.Equal(t, 20, bytes)
	_, _, err = m.Use("Put", 6)
	require.EqualError(t, err, "rocm: Put of 6 elements, but the memory has 5")

	part, err := m.Part(1, 4)
	require.NoError(t, err)
	inner, err := part.Part(1, 3)
	require.NoError(t, err)
	s, err = lent.Elements[int32](&inner)
	require.NoError(t, err)
	require.Equal(t, []int32{3, 4}, s)
	p, _, err := inner.Use("Get", 2)
	require.NoError(t, err)
	require.Equal(t, at+8, p)
	none, err := m.Part(5, 5)
	require.NoError(t, err)
	s, err = lent.Elements[int32](&none)
	require.NoError(t, err)
	require.Empty(t, s)
	for _, bad := range [][2]int{{-1, 2}, {3, 2}, {0, 6}} {
		_, err := m.Part(bad[0], bad[1])
		require.ErrorContains(t, err, "of memory of 5 elements")
	}
	dst, src, bytes, err := lent.Copy(&part, &inner, &part, "CopyOn", 2)
	require.NoError(t, err)
	require.Equal(t, [3]uintptr{at + 4, at + 8, 8}, [3]uintptr{dst, src, uintptr(bytes)})
	_, _, _, err = lent.Copy(&inner, &part, &inner, "CopyOn", 3)
	require.EqualError(t, err, "rocm: CopyOn of 3 elements, but the memory has 2")
	require.ErrorContains(t, inner.Free(), "rocm: only whole memory can be freed, not a part; the whole was made at memory_test.go:")

	require.Equal(t, failed, m.Free())
	_, err = lent.Elements[int32](&inner)
	require.ErrorIs(t, err, lent.ErrClosed)
	_, _, err = part.Use("Put", 0)
	require.ErrorIs(t, err, lent.ErrClosed)
	_, err = part.Part(0, 1)
	require.ErrorIs(t, err, lent.ErrClosed)
	_, _, _, err = lent.Copy(&m, nil, &m, "CopyOn", 0)
	require.ErrorIs(t, err, lent.ErrClosed)
	require.ErrorIs(t, m.Free(), lent.ErrClosed)
}

// What was never made is as what was given back.
func TestNoMemory(t *testing.T) {
	for _, m := range []*lent.Memory{nil, {}} {
		_, _, err := m.Use("Put", 0)
		require.ErrorIs(t, err, lent.ErrClosed)
		require.ErrorContains(t, err, "is nil or a zero value")
		_, err = m.Part(0, 0)
		require.ErrorIs(t, err, lent.ErrClosed)
		_, err = lent.Elements[int8](m)
		require.ErrorIs(t, err, lent.ErrClosed)
		require.ErrorIs(t, m.Free(), lent.ErrClosed)
	}
}

// No elements have no address, and there is nothing to give back to the runtime. Memory that the host cannot read is no slice.
func TestEmptyMemory(t *testing.T) {
	m := lent.NewMemory[float64](lent.New("cuda", 0, "0 bytes of device memory", 0, nil), 0, false)
	p, _, err := m.Use("Put", 0)
	require.NoError(t, err)
	require.Zero(t, p)
	_, err = lent.Elements[float64](&m)
	require.EqualError(t, err, "cuda: 0 bytes of device memory cannot be read by the host: copy it with Get, or use AllocManaged for memory that both can read")
	require.NoError(t, m.Free())
	require.ErrorIs(t, m.Free(), lent.ErrClosed)
}

func TestBytes(t *testing.T) {
	for _, tc := range []struct {
		n  int
		ok bool
	}{{0, true}, {3, true}, {-1, false}, {math.MaxInt / 8, true}, {math.MaxInt/8 + 1, false}, {math.MaxInt, false}} {
		bytes, elem, ok := lent.Bytes[float64](tc.n)
		require.Equal(t, 8, elem)
		require.Equal(t, tc.ok, ok, "%d", tc.n)
		if ok {
			require.Equal(t, tc.n*8, bytes)
		}
	}
}

// Parts are used while the whole is freed: each use sees the memory, or that it is gone.
func TestUseWhileFreed(t *testing.T) {
	for range 100 {
		m := lent.NewMemory[int64](lent.New("cuda", 0, "32 bytes of device memory", 0x1000, func(uintptr) error { return nil }), 4, false)
		part, err := m.Part(1, 3)
		require.NoError(t, err)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					p, _, err := part.Use("Put", 2)
					if err != nil {
						assert.ErrorIs(t, err, lent.ErrClosed)
						return
					}
					assert.Equal(t, uintptr(0x1008), p)
				}
			})
		}
		require.NoError(t, m.Free())
		wg.Wait()
	}
}
