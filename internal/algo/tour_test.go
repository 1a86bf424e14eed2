package algo

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// costs are those between n places, drawn.
func costs(r *rand.Rand, n int) [][]float64 {
	cost := make([][]float64, n)
	for i := range cost {
		cost[i] = make([]float64, n)
		for j := range cost[i] {
			cost[i][j] = math.Exp(4 * r.Float64())
		}
	}
	return cost
}

// Of few places the tour is the best of all orders, but for the slack.
func TestTourIsTheBest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		cost := costs(r, 3+r.IntN(5))
		best := math.Inf(1)
		var try func(tour []int)
		try = func(tour []int) {
			if len(tour) == len(cost) {
				dearest, _ := lap(cost, tour)
				best = min(best, dearest)
			}
			for j := range cost {
				if !slices.Contains(tour, j) {
					try(append(slices.Clone(tour), j))
				}
			}
		}
		try([]int{0})
		tour := Tour(cost)
		isTour(t, tour, len(cost))
		dearest, _ := lap(cost, tour)
		require.LessOrEqual(t, dearest, best*slack*slack)
	}
}

func isTour(t *testing.T, tour []int, n int) {
	t.Helper()
	require.Len(t, tour, n)
	require.Zero(t, tour[0])
	sorted := slices.Sorted(slices.Values(tour))
	for i := range n {
		require.Equal(t, i, sorted[i])
	}
}

// Hosts of sites in turn: the tour goes through each site once, also of many hosts, and changes nothing where all is alike.
func TestTourOfSites(t *testing.T) {
	for _, tc := range []struct{ n, sites int }{{4, 2}, {6, 3}, {12, 4}, {16, 2}, {24, 3}} {
		cost := make([][]float64, tc.n)
		for i := range cost {
			cost[i] = make([]float64, tc.n)
			for j := range cost[i] {
				cost[i][j] = 1
				if i%tc.sites != j%tc.sites {
					cost[i][j] = 10
				}
			}
		}
		tour := Tour(cost)
		isTour(t, tour, tc.n)
		changes := 0
		for i, h := range tour {
			if h%tc.sites != tour[(i+1)%tc.n]%tc.sites {
				changes++
			}
		}
		require.Equal(t, tc.sites, changes, "%v", tour)
		for i := range cost {
			for j := range cost[i] {
				cost[i][j] = 1 + .01*float64((i*7+j*3)%5)
			}
		}
		require.True(t, slices.IsSorted(Tour(cost)), "what is alike stays as it is")
	}
	for n := range 3 {
		require.Len(t, Tour(make([][]float64, n)), n)
	}
}

// One slow pair among many hosts is left out, in either direction.
func TestTourLeavesOutASlowPair(t *testing.T) {
	for _, n := range []int{4, 8, 13, 20} {
		for _, slow := range [][2]int{{0, 1}, {2, 1}, {n - 1, 0}} {
			cost := make([][]float64, n)
			for i := range cost {
				cost[i] = slices.Repeat([]float64{1}, n)
			}
			cost[slow[0]][slow[1]], cost[slow[1]][slow[0]] = 50, 50
			tour := Tour(cost)
			isTour(t, tour, n)
			dearest, _ := lap(cost, tour)
			require.Equal(t, 1., dearest, "%v", tour)
		}
	}
}
