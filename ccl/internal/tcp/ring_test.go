package tcp

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRing moves bytes in and out in random pieces, against a plain slice.
func TestRing(t *testing.T) {
	r := newRing(7)
	rnd := rand.New(rand.NewPCG(1, 2))
	var model []byte
	next := byte(0)
	for range 10_000 {
		free, filled := r.free(), r.filled()
		require.LessOrEqual(t, len(free), 7-len(model))
		require.Equal(t, len(model) == 7, len(free) == 0)
		require.Equal(t, len(model) == 0, len(filled) == 0)
		require.Equal(t, string(model[:len(filled)]), string(filled))
		if rnd.IntN(2) == 0 {
			n := rnd.IntN(len(free) + 1)
			for i := range n {
				free[i] = next
				model = append(model, next)
				next++
			}
			r.put(n)
		} else {
			n := rnd.IntN(len(filled) + 1)
			model = model[n:]
			r.take(n)
		}
	}
}
