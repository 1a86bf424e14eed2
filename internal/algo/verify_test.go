package algo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTerms(t *testing.T) {
	var terms terms
	x := terms.op(leaf(0), leaf(1))
	require.Equal(t, x, terms.op(leaf(0), leaf(1)))
	require.NotEqual(t, x, terms.op(leaf(1), leaf(0)))
	y := terms.op(leaf(2), x)
	require.Equal(t, "(2+(0+1))", terms.text(y))
	for _, tc := range []struct {
		x    term
		n    int
		want string
	}{
		{y, 3, ""},
		{y, 4, "rank 3's contribution is missing"},
		{terms.op(y, x), 3, "rank 1's contribution is in it twice"},
	} {
		if err := terms.eachOnce(tc.x, tc.n); tc.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, tc.want)
		}
	}
	require.Equal(t, "nothing", terms.text(0))
	for r := 3; r < 1000; r++ {
		y = terms.op(y, leaf(r))
	}
	require.LessOrEqual(t, len(terms.text(y)), 600)
	require.Contains(t, terms.text(y), "...")
}

func TestSet(t *testing.T) {
	a, b := newSet(70), newSet(70)
	require.True(t, a.add(69))
	require.False(t, a.add(69), "added once")
	b.later(a)
	r, ok := b.all(1)
	require.False(t, ok || r != 0, "later is now")
	b.now()
	for r := range 69 {
		got, ok := b.all(70)
		require.False(t, ok)
		require.Equal(t, r, got)
		b.add(r)
	}
	_, ok = b.all(70)
	require.True(t, ok, "all are there")
}
