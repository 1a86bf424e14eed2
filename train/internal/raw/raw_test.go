package raw

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// host has no memory but the host's.
var host Views

// What Pack has copied, Unpack writes back, of every type.
func TestPack(t *testing.T) {
	a, b, c := []float32{1, 2, 3}, []ccl.BFloat16{4, 5}, []int8{6}
	d, e, f := []float64{7}, []uint8{}, []ccl.Float8E5M2{8, 9, 10}
	bufs := func() []ccl.Buf {
		return []ccl.Buf{ccl.BufOf(a), ccl.BufOf(b), ccl.BufOf(c), ccl.BufOf(d), ccl.BufOf(e), ccl.BufOf(f)}
	}
	data, err := host.Pack(nil, bufs())
	require.NoError(t, err)
	require.Len(t, data, 12+4+1+8+0+3)
	clear(a)
	clear(b)
	clear(c)
	clear(d)
	clear(f)
	host.Unpack(bufs(), data)
	require.Equal(t, []any{[]float32{1, 2, 3}, []ccl.BFloat16{4, 5}, []int8{6}, []float64{7}, []ccl.Float8E5M2{8, 9, 10}}, []any{a, b, c, d, f})
	again, _ := host.Pack(data, bufs()[:1])
	require.Len(t, again, 12)
	require.Same(t, &data[0], &again[0], "there was enough memory")
	_, err = host.Pack(nil, []ccl.Buf{{}})
	require.Equal(t, ErrDevice, err)
}

// The hash sees each bit, each length, and where one slice ends.
func TestHash(t *testing.T) {
	s := make([]uint8, 77)
	hash := func(bufs ...ccl.Buf) int64 {
		h, err := Hash(bufs)
		require.NoError(t, err)
		return h
	}
	seen := map[int64]bool{hash(ccl.BufOf(s)): true, hash(ccl.BufOf(s[:76])): true, hash(ccl.BufOf(s[:10]), ccl.BufOf(s[10:])): true}
	for i := range s {
		for bit := range 8 {
			s[i] ^= 1 << bit
			seen[hash(ccl.BufOf(s))] = true
			s[i] ^= 1 << bit
		}
	}
	require.Len(t, seen, 3+8*len(s), "different hashes")
	require.Equal(t, hash(ccl.BufOf(s)), hash(ccl.BufOf(slices.Clone(s))))
}
