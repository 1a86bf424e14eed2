package boot

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// relayOf starts a relay for rank 1 of size, whose way to rank 0 is one end of a pipe, and returns
// it, the other end, and the connection of rank 1.
func relayOf(t *testing.T, size int) (r *hostRelay, root, rank *auth.Stream) {
	up, root := auth.Pipe()
	r, rank = startHostRelay(within(t, long), selfJoin(1, size), "job", secretOf(sesame), nil,
		func(context.Context, openDoor) (*auth.Stream, point, error) {
			return up, point{secret: secretOf(sesame), who: selfJoin(0, size)}, nil
		})
	t.Cleanup(r.close)
	t.Cleanup(func() { root.Close() })
	return r, root, rank
}

// joinBehind is a further rank of r's job, whose join has come to root.
func joinBehind(t *testing.T, r *hostRelay, root *auth.Stream, rank int) *auth.Stream {
	t.Helper()
	here, there := auth.Pipe()
	require.True(t, r.admit(there))
	r.coming.Add(1)
	r.serve(newChild(there, selfJoin(rank, r.self.Size), true), there)
	join := joinOf(rank, r.self.Size)
	write(t, here, join.encode())
	require.Equal(t, join, read(t, root))
	return here
}

// joinOf is the join of a rank of a job of so many.
func joinOf(rank, size int) frame {
	return frame{kind: frameJoin, rank: rank, data: selfJoin(rank, size).encode()}
}

func write(t *testing.T, c *auth.Stream, b []byte) {
	t.Helper()
	_, err := c.Write(b)
	require.NoError(t, err)
}

func read(t *testing.T, c *auth.Stream) frame {
	t.Helper()
	f, err := readFrame(c, maxVerdict)
	require.NoError(t, err)
	return f
}

func readVerdict(t *testing.T, c *auth.Stream) verdict {
	t.Helper()
	f := read(t, c)
	require.Equal(t, frameVerdict, f.kind)
	v, err := parseVerdict(f.data)
	require.NoError(t, err)
	return v
}

// Rank 0 may end as soon as the relay has confirmed, and a launcher then end this process: its rank has its answer
// by then.
func TestRelay(t *testing.T) {
	noLeaks(t)
	_, root, rank := relayOf(t, 2)
	join := joinOf(1, 2)
	write(t, rank, join.encode())
	require.Equal(t, join, read(t, root))

	write(t, root, verdict{Peer: -1, Taken: 1}.frame())
	v := readVerdict(t, rank)
	require.Equal(t, verdict{Peer: -1, Taken: 1, Secret: []byte(sesame)}, v)
	root.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	_, err := readFrame(root, maxVerdict)
	require.ErrorIs(t, err, os.ErrDeadlineExceeded, "confirmed before its own rank has")
	root.SetReadDeadline(time.Time{})
	write(t, rank, frame{kind: frameAck}.encode())
	require.Equal(t, frameAck, read(t, root).kind)

	value := frame{kind: frameValue, rank: 1, data: []byte("\x00\x00\x00\x00value")}
	write(t, rank, value.encode())
	require.Equal(t, value, read(t, root))
	table := tableFrame([][]byte{[]byte("a"), []byte("value")})
	write(t, root, table)
	require.Equal(t, table, read(t, rank).encode())
	write(t, rank, frame{kind: frameAck}.encode())
	require.Equal(t, frameAck, read(t, root).kind)

	// Rank 0 may go once nobody needs it; who does then, hears why.
	root.Close()
	for range 2 {
		write(t, rank, value.encode())
		require.Equal(t, Lost, readVerdict(t, rank).Code)
	}
}

// TestRelayCrossed is a join on its way to rank 0 when a success that is not about
// it comes the other way: it is told to try again.
func TestRelayCrossed(t *testing.T) {
	noLeaks(t)
	_, root, rank := relayOf(t, 2)
	write(t, rank, joinOf(1, 2).encode())
	read(t, root)
	write(t, root, verdict{Peer: -1, Taken: 0}.frame())
	require.Equal(t, 0, readVerdict(t, rank).Taken)
}

func TestRelayFindsNobody(t *testing.T) {
	noLeaks(t)
	r, rank := startHostRelay(within(t, long), selfJoin(1, 2), "job", noSecret, nil,
		func(context.Context, openDoor) (*auth.Stream, point, error) {
			return nil, point{}, errors.New("no way")
		})
	defer r.close()
	write(t, rank, joinOf(1, 2).encode())
	v := readVerdict(t, rank)
	require.Equal(t, System, v.Code)
	require.Equal(t, "no way", v.Text)
}

// TestRelayEndsAfterRoot is rank 0 that is lost between two rounds, and then the relay, whose rank has noticed it first:
// who comes to the next round later is to hear of rank 0.
func TestRelayEndsAfterRoot(t *testing.T) {
	if !meetLocally {
		t.Skip("no relays here")
	}
	noLeaks(t)
	root := freeRoot(t)
	boots := joined(t, 4, func(r int) (*Boot, error) {
		return TCP(within(t, long), root, r, 4, &TCPOptions{Secret: []byte("a secret of sixteen")})
	})
	swap(t, boots)
	boots[0].Close()
	var others []*Boot
	for _, b := range boots[1:] {
		if b.server == nil {
			others = append(others, b)
			continue
		}
		_, err := b.AllGather(t.Context(), nil)
		wantError(t, err, Lost, b.Rank(), 0)
		b.Close()
	}
	require.NotEmpty(t, others)
	for _, b := range others {
		_, err := b.AllGather(t.Context(), nil)
		wantError(t, err, Lost, b.Rank(), 0)
	}
}

// What a rank or a relay has sent before it reads the verdict gets no second one, however much that
// is: it stays connected, and hears the true reason.
func TestRelayAnswersOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		verdict verdict
		late    frame
	}{
		"values after a failure":    {verdict{Code: Lost, Peer: 2, Text: "rank 2 is gone"}, frame{kind: frameValue, rank: 3, data: make([]byte, valueHead)}},
		"joins after a failure":     {verdict{Code: Lost, Peer: 2, Text: "rank 2 is gone"}, joinOf(3, 4)},
		"a stray join, and success": {verdict{Peer: -1, Taken: 1}, joinOf(3, 4)},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			r, root, _ := relayOf(t, 4)
			child := joinBehind(t, r, root, 3)
			write(t, root, tc.verdict.frame())
			var late []byte
			for range 20 {
				late = tc.late.append(late)
			}
			v := readVerdict(t, child)
			require.Equal(t, tc.verdict.Text, v.Text)
			require.Equal(t, tc.verdict.Taken, v.Taken)
			write(t, child, late)
			write(t, child, frame{kind: frameAck}.encode())
			if tc.verdict.Code != 0 {
				root.Close() // which is not news
			}
			child.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
			_, err := readFrame(child, maxVerdict)
			require.ErrorIs(t, err, os.ErrDeadlineExceeded, "it has heard all that there is")
		})
	}
}

// A rank behind the relay that confirms nothing, as one that is stopped, or one that is let in when
// all is over and says nothing, keeps the relay's own rank from its verdict for a while only.
func TestRelayWaitsAWhile(t *testing.T) {
	for name, frozen := range map[string]func(t *testing.T, r *hostRelay, root *auth.Stream){
		"stopped": func(t *testing.T, r *hostRelay, root *auth.Stream) { joinBehind(t, r, root, 3) },
		"silent":  func(t *testing.T, r *hostRelay, root *auth.Stream) { r.coming.Add(1) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, root, rank := relayOf(t, 4)
			write(t, rank, joinOf(1, 4).encode())
			read(t, root)
			frozen(t, r, root)
			write(t, root, verdict{Code: Lost, Peer: 2, Text: "rank 2 is gone"}.frame())
			root.SetReadDeadline(time.Now().Add(long / 2))
			rank.SetReadDeadline(time.Now().Add(long / 2))
			require.Equal(t, frameAck, read(t, root).kind)
			require.Equal(t, "rank 2 is gone", readVerdict(t, rank).Text)
			// What it asks for later is answered at once.
			write(t, rank, frame{kind: frameValue, rank: 1, data: make([]byte, valueHead)}.encode())
			require.Equal(t, "rank 2 is gone", readVerdict(t, rank).Text)
		})
	}
}
