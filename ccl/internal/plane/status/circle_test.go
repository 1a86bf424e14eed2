package status

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Who waits for whom, and the circle in it.
func TestCircle(t *testing.T) {
	waits := func(comm uint64, rank, world int, calls uint64) Status {
		return Status{Comm: comm, Rank: int32(rank), World: int32(world), Size: 4, Calls: calls, Doing: Waits, Peer: -1, Call: call.Record{Kind: call.AllReduce}}
	}
	outside := func(comm uint64, rank, world int, calls uint64) Status {
		s := waits(comm, rank, world, calls)
		s.Doing = Outside
		return s
	}
	recv := func(rank, from int) Status {
		s := waits(1, rank, rank, 0)
		s.Call.Kind, s.Peer = call.Recv, int32(from)
		return s
	}
	failed := func(s Status) Status {
		s.Failed = true
		return s
	}
	for _, tc := range []struct {
		name string
		all  []Status
		want string
	}{
		{"nobody", nil, ""},
		{"all are in the call", []Status{waits(1, 0, 0, 5), waits(1, 1, 1, 5)}, ""},
		{"one is late", []Status{waits(1, 0, 0, 5), outside(1, 1, 1, 4)}, ""},
		{"two Comms", []Status{waits(8, 0, 0, 5), outside(8, 1, 1, 4), outside(9, 0, 0, 6), waits(9, 1, 1, 7)}, "0>1 1>0"},
		{"two Comms, and both have come", []Status{waits(8, 0, 0, 5), outside(8, 1, 1, 5), outside(9, 0, 0, 7), waits(9, 1, 1, 7)}, ""},
		{"one of the Comms has failed", []Status{failed(waits(8, 0, 0, 5)), outside(8, 1, 1, 4), outside(9, 0, 0, 6), waits(9, 1, 1, 7)}, ""},
		{"three Comms, and one who waits for them", []Status{
			waits(4, 0, 9, 2), outside(4, 1, 0, 1),
			waits(5, 0, 0, 2), outside(5, 1, 1, 1), waits(6, 0, 1, 2), outside(6, 1, 2, 1), waits(7, 0, 2, 2), outside(7, 1, 0, 1),
		}, "0>1 1>2 2>0"},
		{"receives in a ring", []Status{recv(0, 1), recv(1, 2), recv(2, 0)}, "0>1 1>2 2>0"},
		{"receives in a row", []Status{recv(0, 1), recv(1, 2), outside(1, 2, 2, 0)}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, w := range Circle(tc.all) {
				got = append(got, fmt.Sprintf("%d>%d", w.World, w.On))
			}
			assert.Equal(t, tc.want, strings.Join(got, " "))
		})
	}
}
