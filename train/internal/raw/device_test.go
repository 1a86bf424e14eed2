package raw

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// far is memory of a device that the test has no way to but its copier.
type far struct{ n int }

func (f *far) Ptr() (uintptr, bool) { return 0x1000, true }
func (f *far) Device() int          { return 0 }
func (f *far) Len() int             { return f.n }
func (f *far) Elem() float32        { return 0 }

// copier has the bytes of the device, and may fail.
type copier struct {
	data []byte
	gets int
	fail error
}

func (c *copier) Get(dst []byte, _ ccl.Buf) error { c.gets++; copy(dst, c.data); return c.fail }
func (c *copier) Put(_ ccl.Buf, src []byte) error { copy(c.data, src); return c.fail }

// adder is a copier that adds up by itself.
type adder struct {
	copier
	sum float64
}

func (a *adder) SumsOfSquares(sums []float64, _ ...ccl.Buf) error { sums[0] = a.sum; return a.fail }

// Views of a device are copied where they stand among those of the host.
func TestViewsOfADevice(t *testing.T) {
	on := &copier{data: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	v := Views{on}
	a, b := []int8{9}, []int8{10, 11}
	bufs := []ccl.Buf{ccl.BufOf(a), ccl.BufOfMemory[float32](&far{2}), ccl.BufOf(b)}
	data, err := v.Pack(nil, bufs)
	require.NoError(t, err)
	require.Equal(t, []byte{9, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11}, data)
	before, err := v.Hash(bufs)
	require.NoError(t, err)
	on.data = make([]byte, 8)
	changed, _ := v.Hash(bufs)
	require.NotEqual(t, before, changed, "the hash does not see memory of the device")
	a[0], b[1] = 0, 0
	require.NoError(t, v.Unpack(bufs, data))
	require.Equal(t, []any{int8(9), int8(11), byte(8)}, []any{a[0], b[1], on.data[7]})
	again, _ := v.Hash(bufs)
	require.Equal(t, before, again)
	on.fail = errors.New("it is gone")
	_, packed := v.Pack(nil, bufs)
	_, hashed := v.Hash(bufs)
	for _, err := range []error{packed, hashed, v.Unpack(bufs, data)} {
		require.ErrorIs(t, err, on.fail)
	}
	for _, tc := range []struct {
		v    Views
		bufs []ccl.Buf
	}{{Views{}, bufs}, {v, []ccl.Buf{{}}}, {v, []ccl.Buf{bufs[1].From(1, 9)}}} {
		_, err := tc.v.Len(tc.bufs)
		require.ErrorIs(t, err, ErrDevice)
	}
}

// A device that adds up by itself is not copied for a hash, unless it cannot.
func TestHashOnADevice(t *testing.T) {
	on := &adder{copier: copier{data: make([]byte, 8)}, sum: 3}
	v, bufs := Views{on}, []ccl.Buf{ccl.BufOfMemory[float32](&far{2}), ccl.BufOf([]int8{1})}
	before, err := v.Hash(bufs)
	require.NoError(t, err)
	require.Zero(t, on.gets, "copies")
	on.sum = 4
	after, _ := v.Hash(bufs)
	require.NotEqual(t, before, after, "the hash does not see the sum")
	on.fail = errors.New("no kernel")
	_, err = v.Hash(bufs)
	require.Error(t, err)
	require.Equal(t, 1, on.gets, "copies")
}
