package handover

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// The pieces of all shares are the parts, each byte once and in order.
func TestShare(t *testing.T) {
	var parts []part
	all := []byte{}
	for i, n := range []int{5, 0, 1, 7} {
		data := make([]byte, n)
		for k := range data {
			data[k] = byte(10*i + k)
		}
		all = append(all, data...)
		parts = append(parts, part{data: data})
	}
	for n := int64(1); n < 20; n++ {
		got := []byte{}
		for k := range n {
			share(parts, 13*k/n, 13*(k+1)/n, func(b ccl.Buf) {
				s, _ := ccl.SliceOf[uint8](b)
				require.NotEmpty(t, s)
				got = append(got, s...)
			})
		}
		require.Equal(t, all, got, "%d shares", n)
	}
}
