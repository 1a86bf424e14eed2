package op

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func of(words ...uint64) Mix {
	h := NewMix()
	for _, w := range words {
		h = h.With(w)
	}
	return h
}

// Other words, another order or another number of them is another hash; the same words are the
// same.
func TestMixTellsApart(t *testing.T) {
	seen := map[Mix]bool{}
	for _, words := range [][]uint64{{}, {0}, {0, 0}, {1}, {0, 1}, {1, 0}, {2}, {1 << 63}, {1, 2, 3}, {3, 2, 1}} {
		h := of(words...)
		require.Equal(t, h, of(words...))
		require.False(t, seen[h], "%v", words)
		seen[h] = true
	}
}

// One bit of difference reaches the sum, wherever it is.
func TestSumOfEveryBit(t *testing.T) {
	for bit := range 64 {
		seen := map[uint32]bool{}
		for before := range uint64(50) {
			a, b := of(before, 0).Sum(), of(before, 1<<bit).Sum()
			require.NotEqual(t, a, b, "bit %d after %d", bit, before)
			require.NotZero(t, a)
			seen[a] = true
		}
		require.Len(t, seen, 50)
	}
}
