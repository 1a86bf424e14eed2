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
		s.Call.Kind, s.Peer, s.Call.Root = call.Recv, int32(from), int32(from)
		return s
	}
	send := func(rank, to int) Status {
		s := recv(rank, to)
		s.Call.Kind = call.Send
		return s
	}
	sendRecv := func(rank, to, from, waitsFor int) Status {
		s := recv(rank, from)
		s.Call.Kind, s.To, s.Peer = call.SendRecv, int32(to), int32(waitsFor)
		return s
	}
	grouped := func(s Status) Status {
		s.Several = true
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
		{"receives from each other", []Status{recv(0, 1), recv(1, 0)}, "0>1 1>0"},
		{"sends to each other", []Status{send(0, 1), send(1, 0)}, "0>1 1>0"},
		{"a send and its receive", []Status{send(0, 1), recv(1, 0)}, ""},
		{"a send and a receive from another, which sends", []Status{send(0, 1), recv(1, 2), send(2, 0)}, "0>1 1>2 2>0"},
		{"exchanges in a ring", []Status{sendRecv(0, 1, 2, 2), sendRecv(1, 2, 0, 0), sendRecv(2, 0, 1, 1)}, ""},
		{"exchanges in a ring, each with the rank behind alone", []Status{sendRecv(0, 3, 2, 2), sendRecv(1, 3, 0, 0), sendRecv(2, 3, 1, 1)}, "0>2 2>1 1>0"},
		{"an exchange and its two sides", []Status{sendRecv(0, 1, 2, 1), recv(1, 0), send(2, 0)}, ""},
		{"grouped sends to each other, whose receives follow", []Status{grouped(send(0, 1)), grouped(send(1, 0))}, ""},
		{"a send whose receive is in another Comm", []Status{send(0, 1), outside(1, 1, 1, 0), outside(2, 0, 0, 0),
			func() Status { s := recv(1, 0); s.Comm = 2; return s }()}, "0>1 1>0"},
		{"a send to itself", []Status{send(0, 0), outside(1, 1, 1, 0)}, "0>0"},
		{"a receive from itself", []Status{outside(1, 0, 0, 0), recv(1, 1)}, "1>1"},
		{"an exchange with itself", []Status{sendRecv(0, 0, 0, 0)}, ""},
		{"an exchange of which one half is with itself", []Status{sendRecv(0, 0, 1, 0), outside(1, 1, 1, 0)}, "0>0"},
		{"a group with messages to itself", []Status{grouped(send(0, 0)), grouped(recv(1, 1))}, ""},
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
