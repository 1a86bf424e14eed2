package ccl

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lobby"
)

// Who gets which rank: spares of the job by their number, then newcomers as they came; the first of all work.
func TestSeatGuests(t *testing.T) {
	spare, new := func(w int) lobby.Guest { return lobby.Guest{Spare: w + 1} }, lobby.Guest{}
	silent := lobby.Guest{Silent: true}
	for _, tc := range []struct {
		name                           string
		guests                         []lobby.Guest
		workers, need, spares, waiting int
		ranks                          []int
		size, waits                    int
		fresh                          []int
	}{
		{"nobody", nil, 4, 1, 1, 0, []int{}, 0, 0, nil},
		{"one works", []lobby.Guest{new}, 3, 1, 0, 0, []int{3}, 4, 0, []int{3}},
		{"one too few", []lobby.Guest{new}, 2, 2, 0, 0, []int{-1}, 0, 0, nil},
		{"more than there is room for", []lobby.Guest{new, new, new}, 2, 1, 1, 0, []int{2, 3, -1}, 4, 1, []int{2}},
		{"a spare comes first", []lobby.Guest{new, spare(5), spare(4)}, 4, 1, 2, 2, []int{6, 5, 4}, 7, 2, []int{4}},
		{"nobody is needed, and nobody came", []lobby.Guest{spare(4)}, 4, 0, 2, 1, []int{-1}, 0, 0, nil},
		{"a new spare", []lobby.Guest{new, spare(4)}, 4, 0, 2, 1, []int{5, 4}, 6, 2, nil},
		{"one does not say who it is", []lobby.Guest{new, silent, new}, 2, 2, 0, 0, []int{2, -1, 3}, 4, 0, []int{2, 3}},
		{"nobody says who it is", []lobby.Guest{silent}, 4, 0, 2, 0, []int{-1}, 0, 0, nil},
		{"a spare has not answered", []lobby.Guest{new}, 4, 0, 2, 1, []int{-1}, 0, 0, nil},
	} {
		s := seatGuests(tc.guests, nil, tc.workers, tc.need, tc.spares, tc.waiting)
		require.Equal(t, &lobby.Seats{Ranks: tc.ranks, Size: tc.size, Spares: tc.waits, Fresh: tc.fresh}, s, tc.name)
	}
	s := seatGuests([]lobby.Guest{new, new, spare(2)}, []string{"no way", "", ""}, 2, 2, 1, 1)
	require.Equal(t, &lobby.Seats{Ranks: []int{-1, 3, 2}, Size: 4, Fresh: []int{2, 3}, Unmet: []string{"no way", "", ""}}, s)
	s = seatGuests([]lobby.Guest{new}, []string{"no way"}, 2, 1, 0, 0)
	require.Equal(t, &lobby.Seats{Ranks: []int{-1}, Unmet: []string{"no way"}}, s, "nobody can come")
}

// A process of an earlier meeting, or without the job's secret, does not know the secret of this one.
func TestMeetingSecret(t *testing.T) {
	t.Setenv("GOCCL_SECRET", "")
	secret := func(g int64, of string) string {
		s, err := (&meeting{g: g, seats: &lobby.Seats{Secret: []byte(of)}}).secret()
		require.NoError(t, err)
		return string(s.Bytes())
	}
	all := []string{secret(1, "a"), secret(2, "a"), secret(1, "b")}
	require.Equal(t, all[0], secret(1, "a"))
	t.Setenv("GOCCL_SECRET", "a secret that is long enough for anybody")
	all = append(all, secret(1, "a"))
	slices.Sort(all)
	require.Len(t, slices.Compact(all), 4)
}
