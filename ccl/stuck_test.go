package ccl

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/op"
)

// A message whose two ends are there, and which does not move, is said to be that: how far it came, and between hosts what is
// to be compared.
func TestStuckText(t *testing.T) {
	at := func(rank int32, node int32, kind call.Kind, peer int32) status.Status {
		s := status.Status{Rank: rank, World: rank, Node: node, Size: 2, Doing: status.Waits, Waited: 3000, Peer: peer, To: -1,
			Call: call.Record{Kind: kind, Seq: 4, Count: 2000, Type: op.Float32, Root: peer}}
		s.SetName("tp")
		s.SetHost([]string{"a", "b"}[node])
		return s
	}
	for _, tc := range []struct {
		name string
		node int32
		of   int64
		want string
	}{
		{"between hosts", 1, 8000, "ccl: tp: Send #4 float x 2000 peer 1 has waited for 3s on rank 0: rank 1 on host b is in the matching Recv, " +
			"and nothing moves between the two; 100 of 8000 bytes have. Where small messages pass and large ones do not, compare the MTU of both hosts and of the network between them"},
		{"on one host", 0, 0, "ccl: tp: Send #4 float x 2000 peer 1 has waited for 3s on rank 0: rank 1 on host a is in the matching Recv, and nothing moves between the two"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			other := at(1, tc.node, call.Recv, 0)
			l := status.Late{Waits: at(0, 0, call.Send, 1), Stuck: &other, Done: 100, Of: tc.of}
			assert.Equal(t, tc.want, reporter{new(Comm)}.lateText(&l))
		})
	}
}

// What a late rank did last is said, also where it has done nothing yet.
func TestLateText(t *testing.T) {
	for _, tc := range []struct {
		last call.Record
		want string
	}{
		{call.Record{Kind: call.Broadcast, Seq: 40, Count: 8, Type: op.Float32, Root: 0}, "its last call is Broadcast #40 float x 8 root 0"},
		{call.Record{}, "it has made no call yet"},
	} {
		waits := status.Status{Size: 2, Doing: status.Waits, Waited: 3000, Peer: 1, To: -1, Call: call.Record{Kind: call.Barrier, Seq: 41, Root: -1}}
		waits.SetName("tp")
		late := status.Status{Rank: 1, World: 1, Size: 2, Peer: -1, To: -1, Call: tc.last}
		late.SetHost("a")
		assert.Equal(t, "ccl: tp: Barrier #41 has waited for 3s on rank 0: rank 1 on host a has not arrived; "+tc.want,
			reporter{new(Comm)}.lateText(&status.Late{Waits: waits, Late: []status.Status{late}}))
	}
}

// Ranks that all send, or all receive, are told so.
func TestCircleText(t *testing.T) {
	at := func(rank, on int32, kind call.Kind) status.Wait {
		s := status.Status{Rank: rank, World: rank, Size: 2, Doing: status.Waits, Peer: on, Call: call.Record{Kind: kind, Seq: 1, Root: on}}
		s.SetName("world")
		s.SetHost("a")
		return status.Wait{Status: s, On: on}
	}
	head := "ccl: deadlock: rank 0 in world #1 waits for 1; rank 1 in world #1 waits for 0."
	for _, tc := range []struct {
		a, b call.Kind
		want string
	}{
		{call.Recv, call.Recv, head + " All of them are in Recv, and none in Send: let one send first, or use SendRecv. Rank 0 on host a: Recv #1 peer 1. Rank 1 on host a: Recv #1 peer 0."},
		{call.Send, call.Send, head + " All of them are in Send, and none in Recv: let one receive first, or use SendRecv. Rank 0 on host a: Send #1 peer 1. Rank 1 on host a: Send #1 peer 0."},
		{call.Send, call.Recv, head + " Rank 0 on host a: Send #1 peer 1. Rank 1 on host a: Recv #1 peer 0."},
	} {
		assert.Equal(t, tc.want, circleText([]status.Wait{at(0, 1, tc.a), at(1, 0, tc.b)}))
	}
}
