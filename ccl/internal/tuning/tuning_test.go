package tuning

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each maker has one row, and any other CPU the last.
func TestFamilies(t *testing.T) {
	seen := map[string]bool{}
	for i, f := range families {
		require.False(t, seen[f.Maker], f.Maker)
		seen[f.Maker] = true
		require.Equal(t, i == len(families)-1, f.Maker == "", "the last row alone is that of any CPU")
		require.Equal(t, f, RowOf(f.Maker, 0))
		require.Equal(t, f, RowOf("another", i+1))
		require.LessOrEqual(t, f.WholeTwo, SlotRoom(2), f.Maker)
		require.GreaterOrEqual(t, f.WholeTwo, Inline(2), f.Maker)
		require.True(t, f.SwapFrom == 0 || f.SwapFrom >= LineFrom, "%q: smaller payloads begin in the flag's line, which its rank writes", f.Maker)
		require.False(t, f.SwapFrom > 0 && f.ClaimAhead, "%q: the lines of the next round are the other's", f.Maker)
		for _, from := range []int{f.StreamFrom, f.StreamReduceFrom, f.StreamAllReduceFrom} {
			require.Greater(t, from, SlotRoom(2), "what lies in a slot is read again at once")
		}
	}
	require.Equal(t, families[len(families)-1], RowOf("HygonGenuine", 0))
}

// The bounds of one choice are in order.
func TestThresholds(t *testing.T) {
	require.Less(t, Inline(2), ReadMessageFrom)
	require.Less(t, ReadMessageFrom, ReadAsideFrom)
	require.Less(t, ReadRootFrom, ReadRootTo)
	require.Less(t, ReadTwoFrom, ReadAllTo)
	require.Less(t, ReadAllTo, ReadInPlaceFrom)
	require.Less(t, ReadInPlaceFrom, ReadHalvesTo)
	require.Zero(t, ReadPiece%FoldPiece)
}
