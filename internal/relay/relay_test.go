package relay

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/simhost"
)

func TestParse(t *testing.T) {
	some := [16]byte{1}
	for _, q := range []Request{
		{Listen, some, netip.MustParseAddrPort("10.0.0.1:20000")},
		{Dial, [16]byte{}, netip.MustParseAddrPort("[2001:db8::1]:65535")},
		{Listen, some, netip.MustParseAddrPort("[fe80::1%eth0]:1")},
	} {
		got, err := Parse(q.Append(nil))
		require.NoError(t, err)
		require.Equal(t, q, got)
	}
	none := [16]byte{}
	for _, no := range [][]byte{nil, {Dial}, append([]byte{Dial}, none[:]...),
		Request{'x', some, netip.MustParseAddrPort("10.0.0.1:20000")}.Append(nil),
		Request{Listen, none, netip.MustParseAddrPort("10.0.0.1:20000")}.Append(nil), // which one?
		Request{Dial, some, netip.MustParseAddrPort("10.0.0.1:20000")}.Append(nil),
		Request{Dial, none, netip.MustParseAddrPort("10.0.0.1:0")}.Append(nil),
		Request{Kind: Dial}.Append(nil),
		append(append([]byte{Dial}, none[:]...), "c1:29500"...),
		append(append([]byte{Dial}, none[:]...), "[::0]:29500"...), // another text of ::
		append(Request{Dial, none, netip.MustParseAddrPort("10.0.0.1:20000")}.Append(nil), make([]byte, 100)...),
	} {
		_, err := Parse(no)
		require.ErrorIs(t, err, errRequest, "%q", no)
	}
}

// What is no request is refused, and what is one has one text.
func FuzzRequest(f *testing.F) {
	f.Add(Request{Listen, [16]byte{1}, netip.MustParseAddrPort("10.0.0.1:20000")}.Append(nil))
	f.Add(Request{Dial, [16]byte{}, netip.MustParseAddrPort("[2001:db8::1]:65535")}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if q, err := Parse(b); err == nil {
			require.Equal(t, b, q.Append(nil))
		}
	})
}

// host is one whose environment has a relay, and whose dials are dial's.
type host struct {
	simhost.Host
	dial func(ctx context.Context, addr string) (net.Conn, error)
}

func (h host) Environ() []string {
	return []string{"GOCCL_RELAY=10.0.0.9:1", "GOCCL_SECRET=the secret of a job"}
}

func (h host) Dial(ctx context.Context, addr string) (net.Conn, error) { return h.dial(ctx, addr) }

var peer = netip.MustParseAddrPort("10.0.0.1:20000")

// A Dial asks the relay once, also where the relay is asked first.
func TestDialAsksOnce(t *testing.T) {
	for _, prefers := range []bool{false, true} {
		asked := 0
		h := host{dial: func(_ context.Context, addr string) (net.Conn, error) {
			if addr == peer.String() {
				return nil, errors.New("no way")
			}
			asked++
			return nil, errors.New("no relay")
		}}
		var p Paths
		if prefers {
			p.isNew(peer.Addr())
		}
		_, err := p.Dial(simhost.With(t.Context(), h), "tcp", peer.String(), 0)
		require.EqualError(t, err, "no way; nor through the relay at 10.0.0.9:1: no relay")
		require.Equal(t, 1, asked)
		require.EqualError(t, Because(err, errRequest), "malformed request to a relay; nor through the relay at 10.0.0.9:1: no relay")
		require.ErrorIs(t, Because(err, errRequest), errRequest)
	}
	require.Equal(t, errRequest, Because(errors.New("no way"), errRequest))
}

// late is a connection whose deadlines of the future take a while to set.
type late struct{ net.Conn }

func (l late) SetDeadline(at time.Time) error {
	if at.After(time.Now()) {
		time.Sleep(time.Second)
	}
	return l.Conn.SetDeadline(at)
}

// A context that ends as the connection to the relay is made ends the handshake, which would take 10 s.
func TestDialEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		a, b := net.Pipe()
		defer b.Close()
		h := host{dial: func(context.Context, string) (net.Conn, error) {
			cancel()
			return late{a}, nil
		}}
		r, err := of(h)
		require.NoError(t, err)
		began := time.Now()
		_, err = r.dial(simhost.With(ctx, h), peer)
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(began))
	})
}

// How long a host that does not answer holds up who gets to it through the relay.
func TestDialAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked time.Time
		h := host{dial: func(ctx context.Context, addr string) (net.Conn, error) {
			if addr == peer.String() {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			asked = time.Now()
			return nil, errors.New("no relay")
		}}
		var p Paths
		for _, tc := range []struct {
			name  string
			since time.Duration // the relay has reached the host; negative: it has not
			late  time.Duration
		}{
			{"never reached", -1, 2 * time.Second},
			{"reached of late", time.Second, 0},
			{"reached long ago", time.Hour, 500 * time.Millisecond},
		} {
			if tc.since >= 0 {
				p.isNew(peer.Addr())
				time.Sleep(tc.since)
			}
			began := time.Now()
			_, err := p.Dial(simhost.With(t.Context(), h), "tcp", peer.String(), 0)
			require.Error(t, err)
			require.Equal(t, tc.late, asked.Sub(began), tc.name)
		}
	})
}

// A context may end just as the handshake fails.
func TestDialFailsAsContextEnds(t *testing.T) {
	for range 2000 {
		ctx, cancel := context.WithCancel(t.Context())
		h := host{dial: func(context.Context, string) (net.Conn, error) {
			a, b := net.Pipe()
			go cancel()
			b.Close()
			return a, nil
		}}
		r, err := of(h)
		require.NoError(t, err)
		_, err = r.dial(simhost.With(ctx, h), peer)
		require.Error(t, err)
		cancel()
	}
}
