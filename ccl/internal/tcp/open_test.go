package tcp

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/require"
)

// talk proves that a and b are the two ends of one connection. It closes them.
func talk(a, b *Conn, name string) error {
	defer a.Close()
	defer b.Close()
	for _, way := range [][2]*Conn{{a, b}, {b, a}} {
		if err := sendAll(way[0], []byte(name)); err != nil {
			return err
		}
		got := make([]byte, len(name))
		if err := recvAll(way[1], got); err != nil {
			return err
		}
		if string(got) != name {
			return fmt.Errorf("%q came out as %q", name, got)
		}
	}
	return nil
}

// TestSimultaneousOpen opens 300 streams from both ends at once: both must settle on
// one connection, and no other may be left.
func TestSimultaneousOpen(t *testing.T) {
	for _, tc := range []struct {
		name  string
		nodes int
	}{{"two processes", 2}, {"one process", 1}} {
		t.Run(tc.name, func(t *testing.T) {
			checkLeaks(t)
			a := listen(t)
			b := a
			if tc.nodes == 2 {
				b = listen(t)
			}
			const streams = 300
			ctx := soon(t)
			start := make(chan struct{})
			errs := make(chan error, streams)
			for i := range uint32(streams) {
				key := MakeKey(1, i, 0, 1)
				var ends [2]*Conn
				var fails [2]error
				var wg sync.WaitGroup
				open := func(rank uint32, n, peer *Node) {
					<-start
					ends[rank], fails[rank] = n.Open(ctx, key, rank, peer.Addr())
				}
				wg.Go(func() { open(0, a, b) })
				wg.Go(func() { open(1, b, a) })
				go func() {
					wg.Wait()
					for rank, err := range fails {
						if err != nil {
							errs <- fmt.Errorf("rank %d: %w", rank, err)
							return
						}
					}
					errs <- talk(ends[0], ends[1], key.String())
				}()
			}
			close(start)
			for range streams {
				require.NoError(t, <-errs)
			}
			require.True(t, eventually(func() bool { return kept(a) == 0 && kept(b) == 0 }),
				"connections that nobody uses are left: %d and %d", kept(a), kept(b))
			require.True(t, eventually(func() bool { return booked(a) == 0 && booked(b) == 0 }))
		})
	}
}

// fake is a peer's Node of which a test decides every step.
type fake struct {
	t testing.TB
	l net.Listener
}

func newFake(t testing.TB) *fake {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return &fake{t, l}
}

func (f *fake) addr() netip.AddrPort { return f.l.Addr().(*net.TCPAddr).AddrPort() }

func (f *fake) accept() net.Conn {
	c, err := f.l.Accept()
	require.NoError(f.t, err)
	require.NoError(f.t, c.SetDeadline(time.Now().Add(60*time.Second)))
	return c
}

// reply answers the handshake on c.
func (f *fake) reply(c net.Conn, reply string) error {
	s, _, err := auth.Server(c, "job", secret, func([]byte) ([]byte, error) { return []byte(reply), nil })
	if err == nil && reply == taken {
		err = awaitGo(s, goTime)
	}
	return err
}

type opening struct {
	conn net.Conn
	err  error
}

// begin opens n's end in the background.
func (f *fake) begin(n *Node, id endID) chan opening {
	ctx, done := soon(f.t), make(chan opening, 1)
	go func() {
		c, err := n.OpenControl(ctx, id.Key, id.self, f.addr())
		done <- opening{c, err}
	}()
	return done
}

func committed(n *Node, id endID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := n.ends[id]
	return e != nil && e.committed
}

// joined checks that c and d are one connection.
func joined(t *testing.T, c, d net.Conn) {
	t.Helper()
	require.Equal(t, c.LocalAddr().String(), d.RemoteAddr().String())
	require.Equal(t, c.RemoteAddr().String(), d.LocalAddr().String())
}

// TestLowerRankWins: once the lower rank has reached the other side, its Node turns
// the higher one's dials away.
func TestLowerRankWins(t *testing.T) {
	checkLeaks(t)
	n, f := listen(t), newFake(t)
	low := endID{MakeKey(1, 0, 2, 5), 2}
	done := f.begin(n, low)
	dialed := f.accept()
	defer dialed.Close()
	require.True(t, eventually(func() bool { return committed(n, low) }))
	c, reply := introduce(t, n, low.peer())
	c.Close()
	require.Equal(t, crossed, reply)

	require.NoError(t, f.reply(dialed, taken))
	got := <-done
	require.NoError(t, got.err)
	joined(t, got.conn, dialed)
	got.conn.Close()
	require.Zero(t, booked(n))
}

// TestHigherRankYields: it takes the lower rank's connection, whatever has become of
// its own dial.
func TestHigherRankYields(t *testing.T) {
	for _, tc := range []struct {
		name  string
		reply string // to its dial
	}{
		{"turned away", crossed},
		{"no answer yet", ""},
		{"connection lost", "lost"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			checkLeaks(t)
			n, f := listen(t), newFake(t)
			high := endID{MakeKey(1, 0, 2, 5), 5}
			done := f.begin(n, high)
			dialed := f.accept()
			defer dialed.Close()
			switch tc.reply {
			case "":
			case "lost":
				dialed.Close()
			default:
				require.NoError(t, f.reply(dialed, tc.reply))
			}
			c, reply := introduce(t, n, high.peer())
			defer c.Close()
			require.Equal(t, taken, reply)
			got := <-done
			require.NoError(t, got.err)
			joined(t, got.conn, c)
			got.conn.Close()
			require.Zero(t, booked(n))
		})
	}
}

// TestSettle: where both dials were taken, the lower rank's is the stream.
func TestSettle(t *testing.T) {
	n := listen(t)
	key := MakeKey(1, 0, 0, 1)
	low, high := endID{key, 0}, endID{key, 1}
	e := &end{}
	require.True(t, n.settle(low, e))
	require.True(t, n.settle(high, e))
	e.coming = 1
	require.True(t, n.settle(low, e))
	require.False(t, n.settle(high, e))
	require.False(t, n.commit(e), "a dial after the peer's was taken")
	require.False(t, e.committed)
	e.coming = 0
	require.True(t, n.commit(e))
	n.withdraw(e)
	require.False(t, e.committed)
}

// TestOneWay: one rank cannot reach the other (here an address of nobody, by RFC
// 5737), which can reach it.
func TestOneWay(t *testing.T) {
	checkLeaks(t)
	a, b := listen(t), listen(t)
	ctx := soon(t)
	for self := range uint32(2) {
		key := MakeKey(1, self, 0, 1)
		opened := make(chan *Conn)
		go func() {
			c, err := a.Open(ctx, key, self, netip.MustParseAddrPort("192.0.2.1:9"))
			if err != nil {
				t.Error(err)
			}
			opened <- c
		}()
		peer, err := b.Open(ctx, key, 1-self, a.Addr())
		require.NoError(t, err)
		require.NoError(t, talk(<-opened, peer, "one way"))
	}
}

// TestOpenRetries: connections that break before the handshake is through are dialed
// again.
func TestOpenRetries(t *testing.T) {
	checkLeaks(t)
	n, f := listen(t), newFake(t)
	done := f.begin(n, endID{MakeKey(1, 0, 0, 1), 0})
	for range 3 {
		f.accept().Close()
	}
	c := f.accept()
	defer c.Close()
	require.NoError(t, f.reply(c, taken))
	got := <-done
	require.NoError(t, got.err)
	joined(t, got.conn, c)
	got.conn.Close()
}

func TestOpenFails(t *testing.T) {
	checkLeaks(t)
	other := func(job, secret string) netip.AddrPort {
		n, err := Listen(job, secretOf(secret), auth.Plain, loopback)
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		return n.Addr()
	}
	says := func(reply string) netip.AddrPort {
		f := newFake(t)
		go func() {
			c, err := f.l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			if reply == "banner" {
				c.Write([]byte("SSH-2.0-OpenSSH_9.2p1\r\n"))
				c.Read(make([]byte, 1000))
				return
			}
			f.reply(c, reply)
		}()
		return f.addr()
	}
	closed := newFake(t)
	closed.l.Close()
	good := MakeKey(1, 0, 0, 1)
	for _, tc := range []struct {
		name string
		key  Key
		self uint32
		peer netip.AddrPort
		time time.Duration // 0: it must fail by itself
		is   error
		text []string
	}{
		{name: "wrong secret", key: good, peer: other("job", "another"), is: auth.ErrUnauthorized, text: []string{"stream 0 of ranks 0 and 1", "rank 1 at 127.0.0.1:", "GOCCL_SECRET"}},
		{name: "no secret there", key: good, peer: other("job", ""), is: auth.ErrUnauthorized, text: []string{"the peer has none"}},
		{name: "other job", key: good, peer: other("boj", "secret"), is: auth.ErrJob},
		{name: "not goccl", key: good, peer: says("banner"), is: auth.ErrProtocol, text: []string{`"SSH-2.0-"`}},
		{name: "unknown reply", key: good, peer: says("later"), is: auth.ErrProtocol, text: []string{`replied "later"`}},
		{name: "nobody there", key: good, self: 1, peer: closed.addr(), time: refusedFor / 2, is: context.DeadlineExceeded, text: []string{"rank 0 at " + closed.addr().String(), "not connected", "the last attempt: ", "refused"}},
		{name: "no answer", key: good, peer: newFake(t).addr(), time: 50 * time.Millisecond, is: context.DeadlineExceeded},
		{name: "no address", key: good, peer: netip.AddrPort{}, text: []string{"rank 1 has no address to dial: invalid AddrPort"}},
		{name: "no port", key: good, peer: netip.AddrPortFrom(loopback, 0), text: []string{"rank 1 has no address to dial: 127.0.0.1:0"}},
		{name: "not its stream", key: good, self: 7, peer: closed.addr(), text: []string{"rank 7 is neither of them"}},
		{name: "bad key", key: Key{A: 1, B: 1}, self: 1, peer: closed.addr(), text: []string{"a key has A < B"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n := listen(t)
			ctx := soon(t)
			if tc.time != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.time)
				defer cancel()
			}
			c, err := n.Open(ctx, tc.key, tc.self, tc.peer)
			require.Nil(t, c)
			require.Error(t, err)
			if tc.is != nil {
				require.ErrorIs(t, err, tc.is)
			}
			for _, text := range tc.text {
				require.ErrorContains(t, err, text)
			}
			require.Zero(t, booked(n))

			control, err := n.OpenControl(ctx, tc.key, tc.self, netip.AddrPort{})
			require.Nil(t, control)
			require.Error(t, err)
		})
	}
}

func TestOpenTwice(t *testing.T) {
	n, f := listen(t), newFake(t)
	id := endID{MakeKey(1, 0, 0, 1), 0}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := n.Open(ctx, id.Key, id.self, f.addr())
		done <- err
	}()
	require.True(t, eventually(func() bool { return committed(n, id) }))
	_, err := n.Open(ctx, id.Key, id.self, f.addr())
	require.EqualError(t, err, "tcp: stream 0 of ranks 0 and 1 in communicator 0x1: rank 0 is opening it already")
	cancel(net.ErrWriteToConnected) // any will do
	require.ErrorIs(t, <-done, net.ErrWriteToConnected)
}

// A stream that nobody here opens is offered to who has asked for it, once for each connection; others are not.
func TestOnOffer(t *testing.T) {
	checkLeaks(t)
	a, b := listen(t), listen(t)
	type offer struct {
		key  Key
		self uint32
	}
	offers := make(chan offer, 10)
	b.OnOffer(7, func(key Key, self uint32) { offers <- offer{key, self} })
	dial := func(key Key) *Conn {
		c, err := a.Open(soon(t), key, 1, b.Addr())
		require.NoError(t, err)
		return c
	}
	other, key := MakeKey(0, 6, 1, 2), MakeKey(0, 7, 1, 2)
	c, d := dial(other), dial(key)
	require.Equal(t, offer{key, 2}, <-offers)
	e, err := b.Open(soon(t), key, 2, a.Addr())
	require.NoError(t, err)
	require.NoError(t, talk(d, e, "hello"))

	// One that is being opened is not offered.
	again := MakeKey(0, 7, 1, 3)
	id := endID{again, 3}
	opening, err := b.begin(id)
	require.NoError(t, err)
	f := dial(again)
	require.True(t, eventually(func() bool { b.mu.Lock(); defer b.mu.Unlock(); return opening.conn != nil }))
	b.finish(id, opening, true)
	require.Empty(t, offers)
	for _, c := range []*Conn{c, d, e, f} {
		c.Abort()
	}
}

// TestManyRanksInOneProcess is a ring of goroutine ranks on one Node, each opening
// both its streams at once.
func TestManyRanksInOneProcess(t *testing.T) {
	checkLeaks(t)
	n := listen(t)
	const ranks = 200
	ctx := soon(t)
	var all sync.WaitGroup
	for r := range uint32(ranks) {
		all.Go(func() {
			next, prev := (r+1)%ranks, (r+ranks-1)%ranks
			right, err := n.Open(ctx, MakeKey(1, 0, r, next), r, n.Addr())
			require.NoError(t, err)
			defer right.Close()
			left, err := n.Open(ctx, MakeKey(1, 0, r, prev), r, n.Addr())
			require.NoError(t, err)
			defer left.Close()
			token := []byte{byte(r)}
			require.NoError(t, sendAll(right, token))
			require.NoError(t, recvAll(left, token))
			require.Equal(t, byte(prev), token[0], "rank %d", r)
		})
	}
	all.Wait()
}
