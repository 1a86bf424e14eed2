package algo

import (
	"testing"

	"github.com/goccl/goccl/internal/op"
)

func TestPairwise(t *testing.T) {
	for _, n := range []int{2, 5, 64} {
		share := float64(n-1) / float64(n)
		wantCost(t, "pairwise", op.AllToAll, Flat(n), 0, Cost{n - 1, 2 * (n - 1), share, share, n - 1})
	}
	wantSteps(t, build(t, "pairwise", op.AllToAll, Flat(4), 0)[1],
		both(to(2, 2, 3), from(0, 0, 1)),
		both(to(3, 3, 4), from(3, 3, 4)),
		both(to(0, 0, 1), from(2, 2, 3)))
}
