//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// ManyFrom has communicators of so many ranks start with several ids, until the test ends.
func ManyFrom(t testing.TB, ranks int) {
	for _, v := range compiledIn {
		l := open(t, v)
		before := l.many
		l.many = ranks
		t.Cleanup(func() { l.many = before })
	}
}

// How many ids a communicator has depends on the number of its ranks and on the library alone.
func TestIDs(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		l := *open(t, v)
		for ranks, want := range map[int]int{1: 1, 1023: 1, 1024: 4, 1300: 5, 120960: 472} {
			require.Equal(t, want, l.IDs(ranks), "%d ranks", ranks)
		}
		table := *l.t
		table.CommInitRankScalable = nil
		l.t = &table
		require.Equal(t, 1, l.IDs(120960), "before 2.23")
	})
}
