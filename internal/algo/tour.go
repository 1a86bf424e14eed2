package algo

import (
	"math"
	"math/bits"
	"slices"
)

// mostExact is for how many places Tour finds the best tour there is.
const mostExact = 12

// slack is by how much the dearest way of a tour may be dearer than it needs to be: measured costs are that far off.
const slack = 1.1

// Tour returns an order of n places in which to go round. The dearest way of the tour is about as cheap as it can
// be, as a ring is as fast as its slowest link; of such tours it takes one whose ways are cheap together. The cost
// from i to j is cost[i][j], which is positive. Up to 12 places the tour is the best; with more, one that exchanging
// and moving places does not improve. Place 0 comes first. The order 0, 1, 2 and so on stays where it is nearly as
// good.
//
// The tour with the cheapest dearest way is the bottleneck travelling salesman problem. Whether one exists below a
// limit, and the cheapest of those, is found as Held and Karp (1962) do, by the subsets of places.
func Tour(cost [][]float64) []int {
	n := len(cost)
	plain := make([]int, n)
	for i := range plain {
		plain[i] = i
	}
	if n < 3 {
		return plain
	}
	var best []int
	if n <= mostExact {
		best = exactTour(cost)
	} else {
		best = goodTour(cost)
	}
	dearest, sum := lap(cost, best)
	if d, s := lap(cost, plain); d <= dearest*slack && s <= sum*slack {
		return plain
	}
	return best
}

// lap is the dearest way of a tour, and the sum of all.
func lap(cost [][]float64, tour []int) (dearest, sum float64) {
	for i, from := range tour {
		c := cost[from][tour[(i+1)%len(tour)]]
		dearest, sum = max(dearest, c), sum+c
	}
	return dearest, sum
}

// exactTour finds the least limit below which there is a tour, and the cheapest tour within a bit more.
func exactTour(cost [][]float64) []int {
	var all []float64
	for i, row := range cost {
		for j, c := range row {
			if i != j {
				all = append(all, c)
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	lo, hi := 0, len(all)-1
	for lo < hi {
		if mid := (lo + hi) / 2; cheapestTour(cost, all[mid]) != nil {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return cheapestTour(cost, all[lo]*slack)
}

// cheapestTour is the tour with the least sum of those whose ways cost at most limit, nil if there is none.
func cheapestTour(cost [][]float64, limit float64) []int {
	n := len(cost)
	m := n - 1 // places 1 to n-1, as bits 0 to m-1
	sum, from := make([]float64, m<<m), make([]int8, m<<m)
	for i := range sum {
		sum[i] = math.Inf(1)
	}
	way := func(i, j int) float64 {
		if cost[i][j] > limit {
			return math.Inf(1)
		}
		return cost[i][j]
	}
	for j := range m {
		sum[(1<<j)*m+j] = way(0, j+1)
	}
	for set := 1; set < 1<<m; set++ {
		for j := range m {
			here := sum[set*m+j]
			if set>>j&1 == 0 || math.IsInf(here, 1) {
				continue
			}
			for k := range m {
				if to := set | 1<<k; to != set {
					if s := here + way(j+1, k+1); s < sum[to*m+k] {
						sum[to*m+k], from[to*m+k] = s, int8(j)
					}
				}
			}
		}
	}
	set, last, best := 1<<m-1, -1, math.Inf(1)
	for j := range m {
		if s := sum[set*m+j] + way(j+1, 0); s < best {
			best, last = s, j
		}
	}
	if last < 0 {
		return nil
	}
	tour := make([]int, n)
	for at := m; at > 0; at-- {
		tour[at] = last + 1
		set, last = set&^(1<<last), int(from[set*m+last])
	}
	if bits.OnesCount(uint(set)) != 0 {
		return nil // it cannot be: each place is once in a tour
	}
	return tour
}

// goodTour is the best of the tours that begin as the nearest neighbour does, from each place, after all moves of a
// stretch of up to three places, and all reversals, that improve it.
func goodTour(cost [][]float64) []int {
	n := len(cost)
	better := func(a, b []int) bool { // a is better than b
		ad, as := lap(cost, a)
		bd, bs := lap(cost, b)
		return ad < bd || ad == bd && as < bs-float64(1e-9*bs)
	}
	var best []int
	for first := range n {
		tour, left := []int{first}, make([]bool, n)
		left[first] = true
		for len(tour) < n {
			at, next := tour[len(tour)-1], -1
			for j := range n {
				if !left[j] && (next < 0 || cost[at][j] < cost[at][next]) {
					next = j
				}
			}
			left[next] = true
			tour = append(tour, next)
		}
		if best == nil || better(tour, best) {
			best = tour
		}
	}
	for improved := true; improved; {
		improved = false
		for i := range n {
			for j := i + 1; j < n; j++ {
				next := slices.Clone(best)
				slices.Reverse(next[i : j+1])
				if better(next, best) {
					best, improved = next, true
				}
				for length := 1; length <= 3 && i+length <= n; length++ {
					next := append(slices.Clone(best[:i]), best[i+length:]...)
					next = slices.Insert(next, min(j, len(next)), best[i:i+length]...)
					if better(next, best) {
						best, improved = next, true
					}
				}
			}
		}
	}
	at := slices.Index(best, 0)
	return append(slices.Clone(best[at:]), best[:at]...)
}
