package plane

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// The call of rank 0, whose context ends, names ranks of its Comm that wait for nobody. Where those it waits for wait
// themselves, in another Comm, for a rank that is none of its own, it names that one, and is not the fault of this rank.
func TestUnfinished(t *testing.T) {
	waits := func(comm uint64, world, on int32) status.Status {
		return status.Status{Comm: comm, Rank: world, World: world, For: on, Size: 8, Doing: status.Waits}
	}
	named := waits(2, 4, 6)
	named.SetName("tp")
	for _, tc := range []struct {
		name    string
		told    []status.Status
		missing []int
		peer    int
		late    []int
		own     bool
		err     string
	}{
		{"nothing is known of those it waits for", nil, []int{1, 2}, 1, []int{1, 2}, true, "too late"},
		{"it waits for nobody", nil, nil, -1, nil, true, "too late"},
		{"one of two waits for the other", []status.Status{waits(2, 1, 2)}, []int{1, 2}, 2, []int{2}, true, "too late"},
		{"both wait for a third", []status.Status{waits(2, 1, 3), waits(3, 2, 3)}, []int{1, 2}, 3, []int{3}, true, "too late"},
		{"a rank that is none of its own is late", []status.Status{waits(2, 1, 4), named}, []int{1}, -1, []int{1}, false, "world rank 6 is late in tp: too late"},
		{"they wait for each other", []status.Status{waits(2, 1, 2), waits(3, 2, 1)}, []int{1, 2}, 1, []int{1, 2}, true, "too late"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSite(&Job{}, 0)
			for _, st := range tc.told {
				s.Statuses.Keep(&st, s.Clock())
			}
			c := &Member{identity: identity{id: 1, size: 4, Members: MembersOf([]int{0, 1, 2, 3})}, Site: s}
			f := c.Unfinished(context.Canceled, errors.New("too late"), tc.missing)
			assert.Equal(t, call.Canceled, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.Equal(t, tc.late, f.Missing)
			assert.Equal(t, tc.own, f.Own)
			assert.EqualError(t, f.Err, tc.err)
		})
	}
}
