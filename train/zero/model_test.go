package zero_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/zero"
)

func newModel[P, M zero.Float](t testing.TB, c *ccl.Comm, units [][]int, o *zero.Options) *zero.Model[P, M] {
	m, err := zero.New[P, M](t.Context(), c, units, o)
	require.NoError(t, err)
	return m
}

func paramsOf[P, M zero.Float](t testing.TB, m *zero.Model[P, M], unit int) [][]P {
	w, err := m.Params(t.Context(), unit)
	require.NoError(t, err)
	return w
}

func gradsOf[P, M zero.Float](t testing.TB, m *zero.Model[P, M], unit int) [][]P {
	g, err := m.Grads(t.Context(), unit)
	require.NoError(t, err)
	return g
}

// whole is a slice for each parameter of a unit, element k of which is of(k).
func whole[M zero.Float](lens []int, of func(k int) M) (full [][]M) {
	for _, n := range lens {
		x := make([]M, n)
		for k := range x {
			x[k] = of(k)
		}
		full = append(full, x)
	}
	return full
}

// shards are zeros, as many for each of n units as its shard has.
func shards[P, M zero.Float](m *zero.Model[P, M], n int) (list [][]M) {
	for i := range n {
		list = append(list, make([]M, m.ShardBuf(i).Len()))
	}
	return list
}

// forward has the parameters of n units in turn.
func forward[P, M zero.Float](t testing.TB, m *zero.Model[P, M], n int) {
	for i := range n {
		paramsOf(t, m, i)
		m.Release(i)
	}
}

// backward reduces the gradients of n units, from the last on, each as fill leaves it. It has their parameters meanwhile.
func backward[P, M zero.Float](t testing.TB, m *zero.Model[P, M], n int, fill func(unit int, g [][]P)) {
	for i := n - 1; i >= 0; i-- {
		paramsOf(t, m, i)
		fill(i, gradsOf(t, m, i))
		m.Release(i)
		require.NoError(t, m.Reduce(i))
	}
}

// hearsOfIt waits until c has failed here, for what another rank did.
func hearsOfIt(t testing.TB, c *ccl.Comm) {
	select {
	case <-c.Done():
	case <-time.After(10 * time.Second):
		t.Error("the Comm has not failed")
	}
}

// noGrads leaves gradients as they are.
func noGrads[P zero.Float](int, [][]P) {}

// noUpdate leaves parameters as they are.
func noUpdate[M zero.Float](zero.Piece, []M, []M) error { return nil }
