package ccl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Blocks of all lengths, from none to many chunks, arrive whole and where they belong.
func TestAllToAllV(t *testing.T) {
	sizes := []int{0, 0, 1, 3, 100, 230, 250, 260, 500, 1030, 5000, 70_000}
	for _, n := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			everywhere(t, n, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				for call := range 40 {
					rng := rand.New(rand.NewPCG(uint64(call), uint64(n))) // the same on all ranks
					most := sizes[:2+rng.IntN(len(sizes)-1)]
					inPlace := call%4 == 3
					lens := make([][]int, n) // from, to
					for r := range n {
						lens[r] = make([]int, n)
						for q := range n {
							lens[r][q] = most[rng.IntN(len(most))]
							if inPlace && q < r {
								lens[r][q] = lens[q][r]
							}
						}
					}
					s := shape{kind: ccl.KindAllToAllV, matrix: lens, inPlace: inPlace, number: uint64(call)}
					require.NoError(t, integer[uint32]().play(ctx, c, s))
				}
			})
		})
	}
}

// Two ranks that disagree about what goes from one to the other both hear of it.
func TestAllToAllVDisagreed(t *testing.T) {
	for _, n := range []int{3, 5000} { // beside the header and in pieces
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				sc, dc := []int{n, n, n}, []int{n, n, n}
				if c.Rank() == 2 {
					dc[0]++ // rank 0 sends n
				}
				err := ccl.AllToAllV(ctx, c, make([]int32, dc[0]+2*n), dc, make([]int32, 3*n), sc)
				if err == nil { // what this rank was to get was right
					err = ccl.Barrier(ctx, c)
				}
				e := wants(t, err, ccl.ErrMismatch)
				if c.Rank() == 2 {
					assert.Equal(t, 0, e.Peer)
				}
			})
		})
	}
}
