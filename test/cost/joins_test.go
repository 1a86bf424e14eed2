package cost

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	old        = flag.String("old", "", "the test binary of this package of another commit, to join in turns with this one")
	joinRounds = flag.Int("rounds", 1, "how often each of the two joins, of each size")
)

// TestJoinsInTurns prints how long jobs of this binary and of the one that -old names take to join, in turns, and the ratio of new
// to old. What changes on the machine over time changes for both: a round has one job of each, in an order drawn anew. Without -old
// this binary is both, and only a few ranks join. Nothing is asserted of the times: machines differ.
func TestJoinsInTurns(t *testing.T) {
	sides := [2]string{*old, os.Args[0]}
	sizes, hosts := []int{2, 4, 8, 16, 32, 64}, []int{0, 4}
	if *old == "" {
		sides[0], sizes, hosts = os.Args[0], []int{4}, []int{4}
	}
	t.Log("| ranks | hosts | old ms | new ms | new/old | 95 % interval |")
	for _, n := range sizes {
		for _, h := range hosts {
			if h > n {
				continue
			}
			var ms [2][]float64
			var ratios []float64
			for range *joinRounds {
				first := rand.IntN(2)
				for _, side := range []int{first, 1 - first} {
					f := run(t, launch{path: sides[side], n: n, hosts: h, role: "join"}, true)
					require.Len(t, f["joined"], n)
					ms[side] = append(ms[side], float64(greatest(f["joined"])-greatest(f["began"]))/1e3)
				}
				ratios = append(ratios, ms[1][len(ms[1])-1]/ms[0][len(ms[0])-1])
			}
			low, high := interval(ratios)
			t.Logf("| %d | %d | %.1f | %.1f | %.3f | %.3f to %.3f |", n, max(h, 1), median(ms[0]), median(ms[1]), median(ratios), low, high)
		}
	}
}

// median is the middle of x, or the mean of the two there.
func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// interval is where the median of what x was drawn from lies, with 95 % confidence at least: between two of the values, as far from
// the ends of all as the sign test allows, whatever their distribution. Of fewer than 6 nothing is known.
func interval(x []float64) (low, high float64) {
	s := slices.Sorted(slices.Values(x))
	// Fewer than k+1 of n values lie on one side of the median with a probability of below.
	below, one := 0.0, math.Pow(0.5, float64(len(s)))
	for k := range s {
		if below += one; below > 0.025 {
			if k == 0 {
				break
			}
			return s[k-1], s[len(s)-k]
		}
		one *= float64(len(s)-k) / float64(k+1)
	}
	return math.Inf(-1), math.Inf(1)
}

func TestInterval(t *testing.T) {
	for _, tc := range []struct {
		n         int
		low, high float64 // of 1 to n
	}{
		{1, math.Inf(-1), math.Inf(1)},
		{5, math.Inf(-1), math.Inf(1)},
		{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {20, 6, 15}, {30, 10, 21}, {100, 40, 61}, // as tables of the sign test have it
	} {
		t.Run(fmt.Sprint(tc.n), func(t *testing.T) {
			var x []float64
			for i := range tc.n {
				x = append(x, float64(tc.n-i))
			}
			low, high := interval(x)
			assert.Equal(t, []float64{tc.low, tc.high}, []float64{low, high})
		})
	}
	assert.Equal(t, 2.5, median([]float64{4, 1, 2, 3}))
	assert.Equal(t, 3.0, median([]float64{7, 3, 1}))
}
