package tcp

import (
	"bytes"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/onpath"
)

// wireOf is a connection of which a test has both ends in hand: what is sent, and what comes.
type wireOf struct {
	sent  []byte
	takes int // bytes that it takes yet
	comes []byte
	piece int // bytes that come at a time at most
	end   error
}

func (w *wireOf) sendNow(b, _ []byte) (int, error) {
	n := min(len(b), w.takes)
	w.takes -= n
	w.sent = append(w.sent, b[:n]...)
	return n, nil
}

func (w *wireOf) isClosed() bool { return false }

func (w *wireOf) receiveNow(b, _ []byte) (int, error) {
	n := copy(b[:min(len(b), w.piece)], w.comes)
	if w.comes = w.comes[n:]; n == 0 {
		return 0, w.end
	}
	return n, nil
}

// directions are those of the two ends of a stream whose data travel as w says.
func directions(t testing.TB, w auth.Wire) (a, b *sealed) {
	sa, sb := streams(t)
	take := func(s *auth.Stream) *sealed {
		conn, out, in, err := s.Take(w)
		require.NoError(t, err)
		conn.Close()
		return &sealed{out: out, in: in}
	}
	return take(sa), take(sb)
}

var protected = []auth.Wire{auth.Auth, auth.Encrypt}

// What is sent counts once the connection has taken the whole record, and is asked for again until then.
func TestSealedSendsWhole(t *testing.T) {
	for _, w := range protected {
		a, b := directions(t, w)
		to := &wireOf{}
		head, body := pattern(1, 96), pattern(2, 3*auth.MaxRecord)
		sent, all := 0, append(bytes.Clone(head), body...)
		want := bytes.Clone(all)
		for rnd := rand.New(rand.NewPCG(1, 2)); sent < len(all); {
			to.takes = rnd.IntN(100_000)
			rest, before := all[sent:], len(to.sent)
			var n int
			var err error
			if sent == 0 {
				n, err = a.send(to, rest[:96], rest[96:])
			} else {
				n, err = a.send(to, rest, nil)
			}
			require.NoError(t, err)
			require.LessOrEqual(t, n, auth.MaxRecord)
			require.False(t, n > 0 && len(to.sent) == before, "bytes count that were not sent")
			copied := min(len(rest), auth.MaxRecord) // a record under way has it, so it may change
			if n > 0 {
				copied = 0
			}
			require.Equal(t, copied, (&Conn{sealed: a}).Copied())
			clear(rest[:copied])
			sent += n
		}
		require.Len(t, to.sent, len(all)+4*auth.RecordOver)
		require.Equal(t, w == auth.Auth, bytes.Contains(to.sent, want[1000:1100]))

		// Received in pieces of all sizes, into one place and into two.
		for _, piece := range []int{1 << 20, 70_000, 5000, 1234} {
			again := *b.in
			r := &sealed{in: &again}
			from := &wireOf{comes: to.sent, piece: piece, end: io.EOF}
			var got []byte
			for i := 0; ; i++ {
				x, y := make([]byte, 96), make([]byte, i%3*1000)
				n, err := r.receive(from, x, y)
				if err != nil {
					require.Equal(t, io.EOF, err)
					break
				}
				got = append(got, append(x, y...)[:n]...)
				whole := len(r.left) > 0
				require.Equal(t, whole || len(r.got) > 0 && complete(r.got), r.holds())
			}
			require.True(t, bytes.Equal(want, got))
		}
	}
}

// complete says whether b begins with a whole record.
func complete(b []byte) bool {
	if len(b) < auth.RecordHead {
		return false
	}
	n, err := auth.RecordLen(b)
	return err == nil && len(b) >= n
}

// Nothing is received of data that were changed, nor of what follows.
func TestSealedChanged(t *testing.T) {
	for _, w := range protected {
		a, b := directions(t, w)
		to := &wireOf{takes: 1 << 20}
		for _, s := range []string{"one, ", "two, ", "three"} {
			_, err := a.send(to, []byte(s), nil)
			require.NoError(t, err)
		}
		record := 5 + auth.RecordOver
		for at := range record {
			changed := bytes.Clone(to.sent)
			changed[record+at] ^= 0x40
			again := *b.in
			r := &sealed{in: &again}
			from, got := &wireOf{comes: changed, piece: 7, end: io.EOF}, []byte{}
			for {
				x := make([]byte, 3)
				n, err := r.receive(from, x, nil)
				if got = append(got, x[:n]...); err == nil {
					continue
				}
				if err != io.EOF || at >= auth.RecordHead { // else the rest of a longer record has not come
					require.ErrorIs(t, err, ErrChanged)
				}
				break
			}
			require.Equal(t, "one, ", string(got), "%v byte %d", w, at)
			_, err := r.receive(from, make([]byte, 1), nil)
			require.Error(t, err)
		}
	}
}

// A sealed message costs no memory once the first have passed.
func TestSealedAllocs(t *testing.T) {
	for _, w := range protected {
		a, b := directions(t, w)
		wire := &wireOf{piece: 1 << 20, sent: make([]byte, 0, 1<<20)}
		head, body := make([]byte, 96), make([]byte, 100_000)
		move := func() {
			wire.takes, wire.sent = 1<<20, wire.sent[:0]
			for left := body; len(left) > 0; {
				n, _ := a.send(wire, head, left)
				left = left[n-len(head):]
			}
			for wire.comes = wire.sent; ; {
				if n, _ := b.receive(wire, head, body); n == 0 {
					break
				}
			}
		}
		move()
		require.Zero(t, testing.AllocsPerRun(20, move))
	}
}

// A wait for a stream returns at once where a record has come together with the one before it, and not for a part of one.
func TestHoldsARecord(t *testing.T) {
	for _, w := range protected {
		a, b := directions(t, w)
		to := &wireOf{takes: 1 << 20}
		for range 3 {
			_, err := a.send(to, []byte("ab"), nil)
			require.NoError(t, err)
		}
		require.False(t, b.holds())
		require.False(t, (*sealed)(nil).holds())
		from := &wireOf{comes: to.sent[:len(to.sent)-1], piece: 1 << 20}
		for i, holds := range []bool{true, true, true, false} { // a byte of two, twice
			n, err := b.receive(from, make([]byte, 1), nil)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.Equal(t, holds, b.holds(), "%d", i)
		}
		n, err := b.receive(from, make([]byte, 1), nil)
		require.NoError(t, err)
		require.Zero(t, n)
		from.comes = to.sent[len(to.sent)-1:]
		n, err = b.receive(from, make([]byte, 2), nil)
		require.NoError(t, err)
		require.Equal(t, 2, n)
	}
}

// A Node that is to protect its data has a secret.
func TestListenWithoutSecret(t *testing.T) {
	for _, w := range protected {
		_, err := Listen("job", noSecret, w, loopback)
		require.ErrorIs(t, err, auth.ErrNoSecret)
		require.ErrorContains(t, err, "Wire (GOCCL_WIRE)="+w.String()+", but the job has no secret")
	}
}

// What two ranks agree on is protected wherever there is a secret, and no less than data are.
func TestOpenNotices(t *testing.T) {
	living := func() bool { return false }
	for _, tc := range []struct {
		secret string
		wire   auth.Wire
		sealed bool
		open   bool // it can be read on the way
	}{
		{"", auth.Plain, false, true}, {"secret", auth.Plain, true, true}, {"secret", auth.Auth, true, true}, {"secret", auth.Encrypt, true, false},
	} {
		var nodes [2]*Node
		for i := range nodes {
			n, err := Listen("job", secretOf(tc.secret), tc.wire, loopback)
			require.NoError(t, err)
			defer n.Close()
			nodes[i] = n
		}
		var seen atomic.Value
		path, err := onpath.To(nodes[1].Addr().String(), func(p onpath.Piece) []byte {
			if bytes.Contains(p.Bytes, []byte("survivors")) {
				seen.Store(true)
			}
			return p.Bytes
		})
		require.NoError(t, err)
		defer path.Close()
		key := MakeKey(1, 3, 0, 1)
		a, err := nodes[0].OpenNotices(soon(t), key, 0, path.Addr(), living)
		require.NoError(t, err)
		b, err := nodes[1].OpenNotices(soon(t), key, 1, nodes[0].Addr(), living)
		require.NoError(t, err)
		require.Equal(t, tc.sealed, a.sealed != nil)
		require.NoError(t, talk(a, b, "survivors"))
		require.Equal(t, tc.open, seen.Load() == true)
	}
}

// FuzzSealed receives what somebody on the path has made of three records.
func FuzzSealed(f *testing.F) {
	a, b := directions(f, auth.Encrypt)
	to := &wireOf{takes: 1 << 20}
	for _, s := range []string{"one, ", "two, ", "three"} {
		_, err := a.send(to, []byte(s), nil)
		require.NoError(f, err)
	}
	f.Add(to.sent, 1)
	f.Add(to.sent[:40], 7)
	f.Add(append(bytes.Clone(to.sent[:25]), to.sent...), 100)
	f.Add([]byte{0, 1, 0, 16, 3}, 2)
	f.Fuzz(func(t *testing.T, comes []byte, piece int) {
		again := *b.in
		r := &sealed{in: &again}
		from, got := &wireOf{comes: comes, piece: max(piece&0xffff, 1), end: io.EOF}, []byte{}
		for {
			x := make([]byte, 4)
			n, err := r.receive(from, x[:1], x[1:])
			if got = append(got, x[:n]...); err != nil {
				break
			}
			require.NotZero(t, n)
		}
		require.Contains(t, []string{"", "one, ", "one, two, ", "one, two, three"}, string(got), "whole records, in order")
		require.LessOrEqual(t, len(r.come), auth.MaxRecord+auth.RecordOver)
	})
}
