package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func quiet(n, perNode int) *Machine {
	return &Machine{Ranks: n, PerNode: perNode, Alpha: 5, Beta: 1e-4, InsideAlpha: 1, InsideBeta: 5e-5}
}

// Without jitter the times are those of the papers.
func TestTimes(t *testing.T) {
	for _, tc := range []struct {
		name     string
		n, per   int
		size     float64
		schedule func(int) func(int) Schedule
		want     float64
	}{
		{"ring", 8, 1, 8e6, Ring, 14 * (5 + 100)},
		{"doubling", 8, 1, 1e4, Doubling, 3 * (5 + 1)},
		{"halving", 8, 1, 8e6, Halving, 6*5 + 2*7*100},
		{"tree", 8, 1, 1e4, Tree, 3 * (5 + 1)},
		{"one rank", 1, 1, 1e4, Ring, 0},
		{"inside", 8, 8, 8e6, Ring, 14 * (1 + 50)},
		// Both ranks of a node send to the other node at once in the second step.
		{"shared link", 4, 2, 1e6, Doubling, 1 + 50 + 5 + 2*100},
	} {
		got, err := quiet(tc.n, tc.per).Time(tc.size, tc.schedule(tc.n))
		require.NoError(t, err)
		require.InDelta(t, tc.want, got, 1e-6, tc.name)
	}
}

func TestSwitch(t *testing.T) {
	m := quiet(2, 1)
	m.Switch, m.Announce, m.Copy = 1000, 7, 1e-3
	small, err := m.Time(999, Doubling(2))
	require.NoError(t, err)
	require.InDelta(t, 5+0.999+0.0999, small, 1e-9)
	large, err := m.Time(1000, Doubling(2))
	require.NoError(t, err)
	require.InDelta(t, 5+7+0.1, large, 1e-9)
}

// The same seed is the same machine on the same day.
func TestSeed(t *testing.T) {
	m := quiet(16, 1)
	m.Jitter = 0.1
	a, err := m.Time(1e6, Ring(16))
	require.NoError(t, err)
	b, _ := m.Time(1e6, Ring(16))
	require.Equal(t, a, b)
	m.Seed = 1
	c, _ := m.Time(1e6, Ring(16))
	require.NotEqual(t, a, c)
}

func TestStuck(t *testing.T) {
	_, err := quiet(2, 1).Time(1, func(rank int) Schedule {
		return Schedule{1, func(_ int, st *Step) { st.Recv = append(st.Recv, Move{1 - rank, 1}) }}
	})
	require.ErrorIs(t, err, errStuck)
}
