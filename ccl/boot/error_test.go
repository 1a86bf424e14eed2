package boot

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestError(t *testing.T) {
	e := fault(System, "no luck: %v", fs.ErrNotExist)
	require.EqualError(t, e, "boot: no luck: file does not exist")
	require.EqualError(t, e.of(1, -1), "boot: rank 1: no luck: file does not exist")
	require.EqualError(t, e.of(1, 4), "boot: rank 1 of 4: no luck: file does not exist")
	require.ErrorIs(t, e.of(1, 4), System)
	require.ErrorIs(t, e.of(1, 4), fs.ErrNotExist)
	require.NotErrorIs(t, e, Timeout)
	require.EqualError(t, fault(Argument, "again: %v", e.of(1, 2)), "boot: again: no luck: file does not exist")
	require.Equal(t, e, asError(e))
	require.Equal(t, System, asError(errors.New("x")).Code)
}

func TestCode(t *testing.T) {
	require.Equal(t, "timeout", Timeout.Error())
	require.Equal(t, "system error", System.Error())
	require.Equal(t, "code 99", Code(99).Error())
}

func TestListRanks(t *testing.T) {
	for _, tc := range []struct {
		ranks []int
		want  string
	}{
		{nil, ""},
		{[]int{3}, "3"},
		{[]int{4, 3}, "3, 4"},
		{[]int{1, 2, 3, 7, 9, 10, 10}, "1-3, 7, 9, 10"},
		{[]int{0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34}, "0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 and 2 more"},
	} {
		require.Equal(t, tc.want, listRanks(tc.ranks))
	}
}
