package fit_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/fit"
)

// Ranks and micro batches get the rows of a step in order, each once, however many they are.
func TestDeal(t *testing.T) {
	for _, tc := range []struct{ ranks, micro, rows int }{{1, 0, 12}, {1, 3, 4}, {2, 3, 2}, {6, 1, 2}, {12, 1, 1}} {
		o := &fit.Options{Micro: tc.micro, Rows: tc.rows}
		var got []int32
		for rank := range tc.ranks {
			list, err := o.Deal(rank, func(b *fit.Batch, row int) error {
				b.Tokens = append(b.Tokens, int32(row))
				return nil
			})
			require.NoError(t, err)
			require.Len(t, list, max(tc.micro, 1))
			for _, b := range list {
				require.Len(t, b.Tokens, tc.rows)
				got = append(got, b.Tokens...)
			}
		}
		require.Equal(t, []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, got, tc)
	}
	bad := errors.New("no row")
	_, err := (&fit.Options{Rows: 1}).Deal(0, func(*fit.Batch, int) error { return bad })
	require.ErrorIs(t, err, bad)
}
