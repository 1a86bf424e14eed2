package tcp

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/require"
)

var (
	loopback = netip.MustParseAddr("127.0.0.1")
	secret   = secretOf("secret")
	noSecret = secretOf("")
)

// secretOf is that of a job, or that it has none.
func secretOf(s string) auth.Secret {
	if s == "" {
		none, err := auth.None(nil)
		if err != nil {
			panic(err)
		}
		return none
	}
	return auth.Given([]byte(s))
}

func listen(t testing.TB) *Node {
	n, err := Listen("job", secret, auth.Plain, loopback)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	return n
}

// soon is a context with the time that a test may take.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// kept is how many connections n has that nobody opened.
func kept(n *Node) (conns int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, e := range n.ends {
		if e.expects() {
			conns++
		}
	}
	return conns
}

// booked is how many ends n knows.
func booked(n *Node) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.ends)
}

// introduce dials n as the peer's end of a stream would, and returns the reply. If
// the connection is taken it is the stream.
func introduce(t testing.TB, n *Node, from endID) (*auth.Stream, string) {
	s, reply := undecided(t, n, from)
	if reply == taken {
		_, err := s.Write([]byte{goAhead})
		require.NoError(t, err)
	}
	return s, reply
}

// undecided is introduce of one that does not say go yet.
func undecided(t testing.TB, n *Node, from endID) (*auth.Stream, string) {
	c, err := net.Dial("tcp", n.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(60*time.Second)))
	s, reply, err := auth.Client(c, "job", secret, from.hello())
	require.NoError(t, err)
	return s, string(reply)
}

// streams returns both ends of a connection after its handshake.
func streams(t testing.TB) (a, b *auth.Stream) {
	ta, tb := connected(t)
	served := make(chan error, 1)
	go func() {
		var err error
		b, _, err = auth.Server(tb, "job", secret, func([]byte) ([]byte, error) { return nil, nil })
		served <- err
	}()
	a, _, err := auth.Client(ta, "job", secret, nil)
	require.NoError(t, err)
	require.NoError(t, <-served)
	return a, b
}

func TestListen(t *testing.T) {
	checkLeaks(t)
	n, err := Listen("job", noSecret, auth.Plain, netip.MustParseAddr("::ffff:127.0.0.1"))
	require.NoError(t, err)
	require.Equal(t, loopback, n.Addr().Addr())
	require.NotZero(t, n.Addr().Port())
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())

	_, err = Listen("job", noSecret, auth.Plain, netip.Addr{})
	require.EqualError(t, err, "tcp: no address to listen on")
	_, err = Listen("job", noSecret, auth.Plain, netip.MustParseAddr("192.0.2.1")) // nobody's, by RFC 5737
	require.ErrorContains(t, err, "tcp: cannot listen on 192.0.2.1: ")
}

// TestOpenAlone: a stream opens though the peer rank does nothing, and what was sent
// before it did is there when it does.
func TestOpenAlone(t *testing.T) {
	checkLeaks(t)
	a, b := listen(t), listen(t)
	key := MakeKey(1, 0, 3, 4)
	for _, tc := range []struct {
		name   string
		dialer uint32
	}{{"lower first", 3}, {"higher first", 4}} {
		t.Run(tc.name, func(t *testing.T) {
			key.Stream++
			first, err := a.Open(soon(t), key, tc.dialer, b.Addr())
			require.NoError(t, err)
			require.NoError(t, sendAll(first, []byte("early")))
			require.NoError(t, first.Close())
			second, err := b.Open(soon(t), key, key.A^key.B^tc.dialer, netip.MustParseAddrPort("192.0.2.1:9"))
			require.NoError(t, err, "it must not need to dial")
			n, err := recvError(second)
			require.Equal(t, 5, n)
			require.ErrorContains(t, err, "EOF")
			require.NoError(t, second.Close())
		})
	}
}

func claim(t testing.TB, n *Node, id endID) *end {
	e, err := n.claim(id)
	require.NoError(t, err)
	return e
}

func TestForget(t *testing.T) {
	checkLeaks(t)
	n := listen(t)
	mine, others := endID{MakeKey(1, 0, 0, 1), 0}, endID{MakeKey(2, 0, 0, 1), 0}
	gone, reply := introduce(t, n, mine)
	defer gone.Close()
	require.Equal(t, taken, reply)
	stays, reply := introduce(t, n, others)
	defer stays.Close()
	require.Equal(t, taken, reply)

	require.True(t, eventually(func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.ends[mine.peer()].conn != nil && n.ends[others.peer()].conn != nil
	}))
	n.Forget(1, 1)
	_, err := gone.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
	require.Equal(t, 1, booked(n))

	c, err := n.Open(soon(t), others.Key, 1, n.Addr())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	_, err = stays.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
}

// TestForgetWhileComing: a connection whose handshake outlives its communicator is
// closed, and an Open under way stays.
func TestForgetWhileComing(t *testing.T) {
	n := listen(t)
	id := endID{MakeKey(1, 0, 0, 1), 1}
	e := claim(t, n, id)
	n.Forget(1, 1)
	ta, tb := streams(t)
	defer tb.Close()
	n.file(id, e, ta, nil)
	_, err := tb.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")

	e, err = n.begin(id)
	require.NoError(t, err)
	n.Forget(1, 1)
	require.Same(t, e, n.ends[id])
	n.finish(id, e, false)
	require.Zero(t, booked(n))
}

// TestFile has the orders in which connections of the peer come and go.
func TestFile(t *testing.T) {
	checkLeaks(t)
	n := listen(t)
	id := endID{MakeKey(1, 0, 0, 1), 1}

	// A handshake that fails leaves nothing behind.
	e := claim(t, n, id)
	require.True(t, e.expects())
	n.file(id, e, nil, net.ErrClosed)
	require.Zero(t, booked(n))

	// Of two, the later counts.
	e = claim(t, n, id)
	require.Same(t, e, claim(t, n, id))
	c2, d2 := streams(t)
	defer d2.Close()
	c3, d3 := streams(t)
	defer d3.Close()
	n.file(id, e, c2, nil)
	n.file(id, e, c3, nil)
	_, err := d2.Read(make([]byte, 1))
	require.ErrorContains(t, err, "EOF")
	got, err := n.OpenControl(soon(t), id.Key, 1, n.Addr())
	require.NoError(t, err)
	require.Same(t, c3, got)
	require.Zero(t, booked(n))
	require.NoError(t, got.Close())

	// What comes to an Open that has failed meanwhile is for the next one.
	e, err = n.begin(id)
	require.NoError(t, err)
	require.Same(t, e, claim(t, n, id))
	n.finish(id, e, false)
	c4, d4 := streams(t)
	defer d4.Close()
	n.file(id, e, c4, nil)
	got, err = n.OpenControl(soon(t), id.Key, 1, n.Addr())
	require.NoError(t, err)
	require.Same(t, c4, got)
	require.NoError(t, got.Close())
}

// TestStrangersDoNotStall: 1,000 connections that say nothing and 100 that say
// something else are there before the Open, which is done before the first of them
// is out of time.
func TestStrangersDoNotStall(t *testing.T) {
	checkLeaks(t)
	a, b := listen(t), listen(t)
	for i := range 1100 {
		c, err := net.Dial("tcp", b.Addr().String())
		require.NoError(t, err)
		defer c.Close()
		switch i % 11 {
		case 0:
			c.Write([]byte("GET / HTTP/1.1\r\nHost: goccl\r\n\r\n"))
		case 1:
			c.Write(bytes.Repeat([]byte{0}, 100_000))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), handshakeTime/2)
	defer cancel()
	key := MakeKey(1, 0, 0, 1)
	x, err := a.Open(ctx, key, 0, b.Addr())
	require.NoError(t, err)
	defer x.Close()
	y, err := b.Open(ctx, key, 1, a.Addr())
	require.NoError(t, err)
	defer y.Close()
	require.LessOrEqual(t, b.strangers.Len(), auth.MaxStrangers)
}

// TestBadHello: who knows the secret and talks nonsense is told so.
func TestBadHello(t *testing.T) {
	n := listen(t)
	c, err := net.Dial("tcp", n.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	_, _, err = auth.Client(c, "job", secret, []byte("nonsense"))
	require.EqualError(t, err, "refused by the peer: tcp: a hello of 8 bytes, not 24")
}

// TestNoGoAhead: a connection that was taken, but whose dialer has no use for it, is
// not kept.
func TestNoGoAhead(t *testing.T) {
	checkLeaks(t)
	n := listen(t)
	for _, last := range []string{"", "x"} {
		s, reply := undecided(t, n, endID{MakeKey(1, 0, 0, 1), 0})
		require.Equal(t, taken, reply)
		require.Equal(t, 1, kept(n))
		s.Write([]byte(last))
		s.Close()
		require.True(t, eventually(func() bool { return kept(n) == 0 && booked(n) == 0 }))
	}
}

// TestGoComesLate: an end that has proved itself, and gets its turn on a processor only long after a stranger would have been turned
// away, has a connection all the same.
func TestGoComesLate(t *testing.T) {
	t.Parallel() // it waits
	const prove = 2 * time.Second
	n, err := newNode(nil, loopback, terms{"job", secret, auth.Plain}, prove)
	require.NoError(t, err)
	defer n.Close()
	key := MakeKey(1, 0, 0, 1)
	s, reply := undecided(t, n, endID{key, 0})
	require.Equal(t, taken, reply)
	time.Sleep(prove + prove/10)
	require.Equal(t, 1, kept(n), "it is waited for")
	_, err = s.Write([]byte{goAhead})
	require.NoError(t, err)
	got, err := n.OpenControl(soon(t), key, 1, netip.MustParseAddrPort("192.0.2.1:9")) // it need not dial
	require.NoError(t, err)
	defer got.Close()
	joined(t, got, s)
}

// One that never says go is not waited for for ever, and what it says that is no go is no go.
func TestGoDoesNotCome(t *testing.T) {
	_, b := streams(t)
	defer b.Close()
	require.ErrorIs(t, awaitGo(b, 20*time.Millisecond), os.ErrDeadlineExceeded)
	a, b := streams(t)
	defer b.Close()
	_, err := a.Write([]byte{goAhead + 1})
	require.NoError(t, err)
	require.ErrorIs(t, awaitGo(b, time.Minute), auth.ErrProtocol)
}

// TestCloseEndsAll: Close does not wait for who is in the middle of anything.
func TestCloseEndsAll(t *testing.T) {
	checkLeaks(t)
	n, err := Listen("job", secret, auth.Plain, loopback)
	require.NoError(t, err)
	silent, err := net.Dial("tcp", n.Addr().String())
	require.NoError(t, err)
	defer silent.Close()
	filed, _ := introduce(t, n, endID{MakeKey(1, 0, 0, 1), 0})
	defer filed.Close()
	silentAfter, _ := undecided(t, n, endID{MakeKey(3, 0, 0, 1), 0})
	mute, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	require.NoError(t, err)
	defer mute.Close()
	opened := make(chan error, 1)
	key := MakeKey(2, 0, 0, 1)
	go func() {
		_, err := n.Open(context.Background(), key, 0, mute.Addr().(*net.TCPAddr).AddrPort())
		opened <- err
	}()
	require.True(t, eventually(func() bool { return committed(n, endID{key, 0}) }))

	require.NoError(t, n.Close())
	require.ErrorIs(t, <-opened, net.ErrClosed)
	_, err = n.Open(context.Background(), key, 0, n.Addr())
	require.ErrorIs(t, err, net.ErrClosed)
	for _, c := range []net.Conn{silent, filed, silentAfter} {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
	}
}
