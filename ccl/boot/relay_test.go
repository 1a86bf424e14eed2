package boot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/relay"
)

const relaySecret = "the secret of a relayed job"

// nowhere is an address of TEST-NET-1, which leads nowhere.
var nowhere = netip.MustParseAddrPort("192.0.2.1:20000")

// relayed is a relay of the job of this environment, and a listener that others dial nowhere.
func relayed(t *testing.T, o *RelayOptions) (*Relay, net.Listener) {
	t.Setenv("GOCCL_SECRET", relaySecret)
	if o == nil {
		o = &RelayOptions{}
	}
	o.Log = slog.New(slog.DiscardHandler)
	r, err := ListenRelay("127.0.0.1:0", nil, o)
	require.NoError(t, err)
	t.Cleanup(func() { r.Close() })
	t.Setenv("GOCCL_RELAY", r.Addr())
	return r, listenFor(t, nowhere)
}

func listenFor(t *testing.T, name netip.AddrPort) net.Listener {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l, err := relay.NewListener(nil, inner, name)
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

// dialNowhere dials it, until the relay knows the listener.
func dialNowhere(t *testing.T, p *relay.Paths) net.Conn {
	var conn net.Conn
	require.Eventually(t, func() (ok bool) {
		var err error
		conn, err = p.Dial(t.Context(), "tcp", nowhere.String(), 50*time.Millisecond)
		return err == nil
	}, time.Minute, time.Millisecond)
	require.IsType(t, &relay.Conn{}, conn)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Bytes go both ways and in full, more connections than are parked come in one after the other, and each end hears the
// end of the other.
func TestRelayJoins(t *testing.T) {
	r, l := relayed(t, nil)
	var p relay.Paths
	data := bytes.Repeat([]byte("relayed "), 100_000)
	for range 5 {
		a := dialNowhere(t, &p)
		b, err := l.Accept()
		require.NoError(t, err)
		require.Equal(t, "192.0.2.1:20000, through the relay at "+r.Addr(), a.RemoteAddr().String())
		require.Contains(t, b.RemoteAddr().String(), "a rank that dialed 192.0.2.1:20000, through the relay at ")
		for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
			go func() {
				way[0].Write(data)
				way[0].(*relay.Conn).CloseWrite()
			}()
			got, err := io.ReadAll(way[1])
			require.NoError(t, err)
			require.True(t, bytes.Equal(data, got))
		}
		a.Close()
		b.Close()
	}
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.pairs == 0 && r.parked == 2 && r.piers[nowhere].uses == 2
	}, time.Minute, time.Millisecond)
	l.Close()
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.piers) == 0 && r.parked == 0
	}, time.Minute, time.Millisecond)
	_, err := p.Dial(t.Context(), "tcp", nowhere.String(), 50*time.Millisecond)
	require.ErrorContains(t, err, "; nor through the relay at "+r.Addr()+": refused by the peer: nobody listens at 192.0.2.1:20000")
}

// A process that can be reached directly is, though the relay knows it too; and a refusal by one that has been reached counts.
func TestRelayIsLast(t *testing.T) {
	_, _ = relayed(t, nil)
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	at := netip.MustParseAddrPort(inner.Addr().String())
	l, err := relay.NewListener(nil, inner, at)
	require.NoError(t, err)
	defer l.Close()
	var p relay.Paths
	require.False(t, p.Trusts(nil, at))
	conn, err := p.Dial(t.Context(), "tcp", at.String(), 0)
	require.NoError(t, err)
	require.IsType(t, &net.TCPConn{}, conn)
	conn.Close()
	require.True(t, p.Trusts(nil, at))
	l.Close()
	refused := func(p *relay.Paths) bool {
		_, err := p.Dial(t.Context(), "tcp", at.String(), 0)
		var op *net.OpError
		require.Error(t, err)
		return errors.As(err, &op)
	}
	require.True(t, refused(&p))
	require.False(t, refused(new(relay.Paths)), "another host may have that address")
}

// The relay dies while bytes are under way: both ends hear so.
func TestRelayDies(t *testing.T) {
	r, l := relayed(t, nil)
	a := dialNowhere(t, new(relay.Paths))
	b, err := l.Accept()
	require.NoError(t, err)
	_, err = a.Write([]byte("x"))
	require.NoError(t, err)
	var one [1]byte
	_, err = io.ReadFull(b, one[:])
	require.NoError(t, err)
	r.Close()
	for _, c := range []net.Conn{a, b} {
		_, err := c.Read(one[:])
		require.Error(t, err)
	}
}

// Limits: of connections, of parked ones, of one name.
func TestRelayLimits(t *testing.T) {
	r, l := relayed(t, &RelayOptions{Connections: 2})
	var p relay.Paths
	for range 2 {
		dialNowhere(t, &p)
		_, err := l.Accept()
		require.NoError(t, err)
	}
	_, err := p.Dial(t.Context(), "tcp", nowhere.String(), 50*time.Millisecond)
	require.ErrorContains(t, err, "it joins 2 connections at most")
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.parked == 2
	}, time.Minute, time.Millisecond)
	require.ErrorContains(t, r.enter(relay.Request{Kind: relay.Listen, ID: r.piers[nowhere].id, Name: nowhere}),
		"2 connections wait at most, by RelayOptions.Connections, and 192.0.2.1:20000 has one of them")
	id := [16]byte{9}
	r.most = 100
	require.ErrorContains(t, r.enter(relay.Request{Kind: relay.Listen, ID: id, Name: nowhere}), "another process listens at 192.0.2.1:20000")
	r.mu.Lock()
	pier := r.piers[nowhere]
	free := pier.free
	id, pier.free = pier.id, make([]*berth, mostBerths)
	r.mu.Unlock()
	require.ErrorContains(t, r.enter(relay.Request{Kind: relay.Listen, ID: id, Name: nowhere}), "192.0.2.1:20000 has 4 connections that wait")
	r.mu.Lock()
	pier.free = free
	r.mu.Unlock()
}

// Where all places are taken, a listener that comes has that of another's second connection: as many listeners as there
// may be connections are reached, and no more.
func TestRelayHasManyListeners(t *testing.T) {
	r, first := relayed(t, &RelayOptions{Connections: 3})
	listeners := map[netip.AddrPort]net.Listener{nowhere: first}
	for i := range 2 {
		name := netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(2 + i)}), 20000)
		require.Eventually(t, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.parked == min(2*len(listeners), 3)
		}, time.Minute, time.Millisecond)
		listeners[name] = listenFor(t, name)
	}
	parked := func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		for name := range listeners {
			if p := r.piers[name]; p == nil || len(p.free) != 1 {
				return false
			}
		}
		return r.parked == 3
	}
	var p relay.Paths
	for name, l := range listeners {
		require.Eventually(t, parked, time.Minute, time.Millisecond)
		require.ErrorContains(t, r.enter(relay.Request{Kind: relay.Listen, ID: [16]byte{9}, Name: netip.MustParseAddrPort("192.0.2.9:1")}),
			"3 listeners wait at most, by RelayOptions.Connections")
		conn, err := p.Dial(t.Context(), "tcp", name.String(), 50*time.Millisecond)
		require.NoError(t, err)
		got, err := l.Accept()
		require.NoError(t, err)
		conn.Close()
		got.Close()
	}
	for _, l := range listeners {
		l.Close()
	}
	require.Eventually(t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return len(r.piers) == 0 && r.parked == 0 && r.pairs == 0
	}, time.Minute, time.Millisecond)
}

// A process comes back to the name of one of which nothing waits any more, though a connection of that is still joined.
func TestRelayNameIsFree(t *testing.T) {
	r, _ := relayed(t, nil)
	name := netip.MustParseAddrPort("192.0.2.7:20000")
	q := relay.Request{Kind: relay.Listen, ID: [16]byte{1}, Name: name}
	parks := func(id byte) (net.Conn, error) {
		conn, err := net.Dial("tcp", r.Addr())
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		q.ID[0] = id
		_, _, err = shake(t.Context(), conn, relay.Job, relay.Key(auth.Given([]byte(relaySecret))), q.Append(nil))
		return conn, err
	}
	waits := func(want, uses int) {
		t.Helper()
		require.Eventually(t, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			p := r.piers[name]
			return p != nil && len(p.free) == want && p.waits == want && p.uses == uses
		}, time.Minute, time.Millisecond)
	}
	_, err := parks(1)
	require.NoError(t, err)
	waits(1, 1)
	_, err = parks(2)
	require.ErrorContains(t, err, "another process listens at 192.0.2.7:20000")
	_, err = new(relay.Paths).Dial(t.Context(), "tcp", name.String(), 50*time.Millisecond)
	require.NoError(t, err)
	waits(0, 1)
	_, err = parks(2)
	require.NoError(t, err)
	waits(1, 2)
	_, err = parks(1)
	require.ErrorContains(t, err, "another process listens at 192.0.2.7:20000")
}

// Half a second of bytes takes half a second, whichever connection they are of.
func TestRelayRate(t *testing.T) {
	p := pacer{rate: 1 << 20}
	began := time.Now()
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 4 {
				p.wait(64<<10, nil)
			}
		})
	}
	all.Wait()
	require.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
	over := make(chan struct{})
	close(over)
	require.False(t, p.wait(1<<30, over))
}

// A process without the secret, or with the key alone where the secret is due, gets nothing; a relay without one is none.
func TestRelayKeepsStrangersOut(t *testing.T) {
	t.Setenv("GOCCL_SECRET", "")
	_, err := ListenRelay("127.0.0.1:0", nil, nil)
	require.ErrorContains(t, err, "a relay takes those alone that know the job's secret")
	r, _ := relayed(t, nil)
	key, err := RelayKey(nil)
	require.NoError(t, err)
	for _, tc := range []struct {
		key auth.Secret
		job string
		ok  bool
	}{{auth.Given(key), relay.Job, true}, {auth.Given(key), hallJob, false}, {auth.Given([]byte(relaySecret)), relay.Job, false}} {
		conn, err := net.Dial("tcp", r.Addr())
		require.NoError(t, err)
		_, _, err = shake(t.Context(), conn, tc.job, tc.key, relay.Request{Kind: relay.Listen, ID: [16]byte{1}, Name: netip.MustParseAddrPort("192.0.2.9:1")}.Append(nil))
		require.Equal(t, tc.ok, err == nil, "%v", err)
		conn.Close()
	}
	conn, err := net.Dial("tcp", r.Addr())
	require.NoError(t, err)
	_, _, err = shake(t.Context(), conn, relay.Job, auth.Given(key), []byte("nonsense"))
	require.ErrorContains(t, err, "malformed request to a relay")
	for _, no := range [][]byte{{}, []byte("short")} {
		_, err = ListenRelay("127.0.0.1:0", no, nil)
		require.Error(t, err)
	}
	t.Setenv("GOCCL_SECRET", "")
	_, err = new(relay.Paths).Dial(context.Background(), "tcp", nowhere.String(), time.Second)
	require.ErrorContains(t, err, "GOCCL_RELAY="+r.Addr()+", but the job has no secret")
}

// What a relay is given to pass on is nothing that it can read: of two ends that have the secret it sees no byte of
// what they say, even where data are to travel plain.
func TestRelaySeesNothing(t *testing.T) {
	_, l := relayed(t, nil)
	secret := auth.Given([]byte(relaySecret))
	got := make(chan *auth.Stream, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			close(got)
			return
		}
		s, _, err := auth.Server(conn, "job", secret, func([]byte) ([]byte, error) { return nil, nil })
		if err != nil {
			close(got)
			return
		}
		got <- s
	}()
	s, _, err := auth.Client(dialNowhere(t, new(relay.Paths)), "job", secret, nil)
	require.NoError(t, err)
	other := <-got
	require.NotNil(t, other)
	for _, s := range []*auth.Stream{s, other} {
		_, out, in, err := s.Take(auth.Plain)
		require.NoError(t, err)
		require.NotNil(t, out)
		require.NotNil(t, in)
		require.NotContains(t, string(out.Seal(nil, []byte("a gradient in plain"), nil)), "gradient")
	}
}
