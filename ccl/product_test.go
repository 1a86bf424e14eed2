package ccl_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// kinds are all that move data, Barrier, and Send, which stands for Recv as well.
var kinds = []ccl.Kind{
	ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindReduceScatterV, ccl.KindBroadcast,
	ccl.KindAllGather, ccl.KindAllGatherV, ccl.KindGather, ccl.KindGatherV, ccl.KindScatter, ccl.KindScatterV,
	ccl.KindAllToAll, ccl.KindAllToAllV, ccl.KindSend, ccl.KindSendRecv, ccl.KindBarrier,
}

// roots are the roots to try: all, or a sample of many.
func roots(n int) []int {
	if n > 4 {
		return []int{0, 1, n / 2, n - 1}
	}
	return []int{0, 1, 2, 3}[:n]
}

// cases are all calls there are of these lengths.
func cases(n int, lengths []int) iter.Seq2[element, shape] {
	return func(yield func(element, shape) bool) {
		number := uint64(0)
		for _, kind := range kinds {
			for _, e := range elements {
				for op := ccl.Sum; op <= ccl.Avg; op++ {
					s := shape{kind: kind, op: op}
					if !s.reduces() && op != 0 {
						continue
					}
					for _, root := range roots(n) {
						if !s.rooted() && root > 0 {
							continue
						}
						for _, count := range lengths {
							for _, inPlace := range []bool{false, true} {
								s := shape{kind: kind, op: op, root: root, count: count, inPlace: inPlace}
								if inPlace && !s.canBeInPlace() {
									continue
								}
								number++
								s.number = number
								s.queued = mix(number)%8 == 0
								s.uneven(n)
								if !yield(e, s) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}

// lengths of the product.
var lengths = []int{0, 1, 2, 3, 7, 64}

// Every collective, type and operator, in and out of place, from every root, on 1 to
// 8 ranks that talk in every way. -short takes a sample, another one in every world.
func TestProduct(t *testing.T) {
	share := uint64(shortShare)
	if raceDetector {
		share *= 4
	}
	for _, n := range []int{1, 2, 3, 4, 5, 7, 8} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			h := fnv.New64()
			fmt.Fprint(h, t.Name())
			sample := h.Sum64()
			played := 0
			for e, s := range cases(n, lengths) {
				if testing.Short() && mix(s.number^sample)%share != 0 {
					continue
				}
				require.NoError(t, e.play(t.Context(), c, s))
				played++
			}
			if c.Rank() == 0 {
				t.Logf("%d calls on %v", played, c)
			}
		}, ccltest.Deadline(5*time.Minute))
	}
}

// shortShare: -short plays one in so many, in each of 28 worlds: five calls of six are played in one of them.
const shortShare = 16

// Named types, int and uint reduce and move as what they are.
func TestProductNamed(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		number := uint64(0)
		for _, e := range namedElements {
			for op := ccl.Sum; op <= ccl.Avg; op++ {
				for _, kind := range []ccl.Kind{ccl.KindAllReduce, ccl.KindReduceScatter, ccl.KindAllToAll} {
					number++
					require.NoError(t, e.play(t.Context(), c, shape{kind: kind, op: op, count: 17, number: number, queued: number%2 == 0}))
				}
			}
		}
	})
}

// A kind that cannot reduce a type says so, on all ranks alike, and nothing is lost.
func TestProductUnsupported(t *testing.T) {
	inWorlds(t, 3, func(t testing.TB, c *ccl.Comm) {
		for _, e := range elements {
			for op := ccl.Sum; op <= ccl.BXor; op++ {
				for _, kind := range kinds {
					s := shape{kind: kind, op: op, count: 5, number: 1}
					s.uneven(c.Size())
					err := c.Supports(kind, e.Type(), op)
					if want := s.reduces() && op > ccl.Avg && e.Type() >= ccl.TypeFloat16; want != (err != nil) { // bits of floats
						t.Fatalf("Supports(%v, %v, %v) is %v", kind, e.Type(), op, err)
					}
					if err == nil {
						continue
					}
					if err := e.play(context.Background(), c, s); codeOf(err) != ccl.ErrUnsupported {
						t.Fatal(err)
					}
				}
			}
		}
		require.NoError(t, elements[0].play(t.Context(), c, shape{kind: ccl.KindAllReduce, count: 5, number: 2}))
	})
}
