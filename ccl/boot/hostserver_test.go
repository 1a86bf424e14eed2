package boot

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// twoJoin has the local rank and another join a job of two, and returns their connections to its root.
func twoJoin(t *testing.T) (local, other *auth.Stream) {
	t.Helper()
	_, root, local := rootFor(t, 2, "job", "")
	other, _, err := dialerTo(1, 2, "job", "", root).dial(within(t, long))
	require.NoError(t, err)
	t.Cleanup(func() { other.Close() })
	for rank, conn := range []*auth.Stream{local, other} {
		write(t, conn, joinOf(rank, 2).encode())
	}
	return local, other
}

// TestCrowdLocalLast is what lets a process end as soon as it has its answer: the
// others on whom it may shut the acceptor have confirmed theirs.
func TestCrowdLocalLast(t *testing.T) {
	noLeaks(t)
	local, other := twoJoin(t)
	readVerdict(t, other)

	local.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := readFrame(local, maxVerdict)
	require.Error(t, err, "told before the other has confirmed")
	local.SetReadDeadline(time.Time{})
	write(t, other, frame{kind: frameAck}.encode())
	readVerdict(t, local)
}

// A rank that refuses as soon as it has joined does not keep the local rank from hearing that all have: its next AllGather
// has the reason.
func TestRefusalAfterJoining(t *testing.T) {
	noLeaks(t)
	local, other := twoJoin(t)
	require.Zero(t, readVerdict(t, other).Code)
	write(t, other, leaving(1, &Error{Code: Argument, Peer: 1, Text: "no"}).encode())
	require.Equal(t, Argument, readVerdict(t, other).Code)
	for range 2 {
		write(t, other, frame{kind: frameAck}.encode())
	}
	require.Zero(t, readVerdict(t, local).Code)
	v := readVerdict(t, local)
	require.Equal(t, Argument, v.Code)
	require.Equal(t, 1, v.Peer)
}

// serving is the root of a job of so many, with its connections to the local rank and to rank 1.
func serving(size int) (local, other *auth.Stream, end func()) {
	h := newRootServer(selfJoin(0, size), "job")
	local = h.attach()
	other, there := auth.Pipe()
	h.admit(there)
	h.coming.Add(1)
	h.serve(newChild(there, selfJoin(1, size), false), there)
	h.wg.Go(h.loop)
	return local, other, h.close
}

// Bad news is given to the local rank before that gives up, though another does not confirm it: else it would end without
// knowing why.
func TestBadNewsIsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, other, end := serving(3)
		defer end()
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		mine := selfJoin(0, 3)
		mine.Left = left(ctx)
		write(t, local, frame{kind: frameJoin, rank: 0, data: mine.encode()}.encode())
		write(t, other, joinOf(1, 3).encode())
		require.Equal(t, Timeout, readVerdict(t, other).Code)
		require.Equal(t, Timeout, readVerdict(t, local).Code)
		require.Less(t, time.Since(began), 300*time.Millisecond+grace)
	})
}

// A rank that does not confirm keeps the local rank from what all others have for a while, and not until its time is
// over: it may have been cut off just then, and the others go on in the job.
func TestUnconfirmedIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, other, end := serving(2)
		defer end()
		both := func(kind byte, data []byte) {
			for rank, conn := range []*auth.Stream{local, other} {
				if kind == frameJoin {
					data = selfJoin(rank, 2).encode()
				}
				write(t, conn, frame{kind: kind, rank: rank, data: data}.encode())
			}
		}
		began := time.Now()
		both(frameJoin, nil)
		require.Zero(t, readVerdict(t, other).Code)
		require.Zero(t, readVerdict(t, local).Code)
		require.Equal(t, confirmLimit, time.Since(began))
		both(frameValue, make([]byte, valueHead))
		require.Equal(t, frameTable, read(t, other).kind)
		require.Equal(t, frameTable, read(t, local).kind)
		require.Equal(t, 2*confirmLimit, time.Since(began))
	})
	synctest.Test(t, func(t *testing.T) { // the same, behind a relay
		r, root, local := relayOf(t, 3)
		write(t, local, joinOf(1, 3).encode())
		read(t, root)
		joinBehind(t, r, root, 2)
		began := time.Now()
		write(t, root, verdict{Peer: -1, Taken: 2}.frame())
		require.Zero(t, readVerdict(t, local).Code)
		require.Equal(t, confirmLimit, time.Since(began))
	})
}

// from is a connection that came to that address of this host.
type from struct {
	net.Conn
	local string
}

func (f from) LocalAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(f.local), 1))
}

// The first address of this host counts that another host has reached.
func TestDoorReached(t *testing.T) {
	c := new(hostServer)
	for _, tc := range [][2]string{
		{"127.0.0.1", "invalid IP"},
		{"10.0.0.2", "10.0.0.2"},
		{"10.0.0.3", "10.0.0.2"},
	} {
		c.reached(from{local: tc[0]})
		require.Equal(t, tc[1], c.seen.String(), tc[0])
	}
}
