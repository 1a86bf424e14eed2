package simnet

import (
	"context"
	"io"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// pair connects the two hosts of a network.
func pair(t *testing.T, n *Net) (a, b net.Conn) {
	t.Helper()
	l, err := n.Host(1).Listen("0.0.0.0:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	a, err = n.Host(0).Dial(t.Context(), l.Addr().String())
	require.NoError(t, err)
	b, err = l.Accept()
	require.NoError(t, err)
	return a, b
}

// inBubble runs f with a network of two hosts, a millisecond apart.
func inBubble(t *testing.T, f func(t *testing.T, n *Net)) {
	synctest.Test(t, func(t *testing.T) { f(t, New(1, 2, Link{Delay: time.Millisecond, Rate: 1e6, Window: 1000})) })
}

// Bytes come in order, after the delay and what the rate takes, and then the end.
func TestDelivers(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Net) {
		a, b := pair(t, n)
		began := time.Now()
		go func() {
			a.Write(make([]byte, 5000)) // five windows
			a.Write([]byte{7})
			a.Close()
		}()
		got := make([]byte, 5002) // each read takes all that has come, so that a window opens at once
		read, err := io.ReadFull(b, got)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Equal(t, 5001, read)
		require.EqualValues(t, 7, got[5000])
		require.Equal(t, 5*2*time.Millisecond+time.Millisecond+time.Microsecond, time.Since(began))
	})
}

// A black hole holds what is sent, in its direction, until it is whole again. Nothing connects through it.
func TestCut(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Net) {
		a, b := pair(t, n)
		n.Cut(0, 1, true)
		began := time.Now()
		_, err := a.Write([]byte{1})
		require.NoError(t, err)
		_, err = b.Write([]byte{2})
		require.NoError(t, err)
		x := make([]byte, 1)
		_, err = a.Read(x)
		require.NoError(t, err)
		time.AfterFunc(time.Minute, func() { n.Cut(0, 1, false) })
		b.SetReadDeadline(time.Now().Add(time.Second))
		_, err = b.Read(x)
		require.ErrorContains(t, err, "i/o timeout")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		_, err = n.Host(1).Dial(ctx, "10.0.0.1:1")
		require.ErrorIs(t, err, context.DeadlineExceeded)
		b.SetReadDeadline(time.Time{})
		_, err = b.Read(x)
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(began), time.Minute)
		_, err = n.Host(1).Dial(t.Context(), "10.0.0.1:1")
		require.ErrorIs(t, err, syscall.ECONNREFUSED)
	})
}

// A reset loses what is under way, and both ends hear of it.
func TestReset(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Net) {
		a, b := pair(t, n)
		_, err := a.Write([]byte{1})
		require.NoError(t, err)
		require.Equal(t, 1, n.Open(0, 1))
		require.True(t, n.Reset(1, 0, 5))
		require.False(t, n.Reset(0, 1, 0))
		for _, c := range []net.Conn{a, b} {
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
	})
}

// A firewall that has forgotten connections resets the one on which something is sent meanwhile. The others, and those
// that are made then, stay.
func TestForget(t *testing.T) {
	inBubble(t, func(t *testing.T, n *Net) {
		idle, idlePeer := pair(t, n)
		a, b := pair(t, n)
		n.Host(1).Forget(true)
		_, err := b.Write([]byte{1})
		require.NoError(t, err) // as of a kernel, which hears of it later
		for _, c := range []net.Conn{a, b} {
			_, err = c.Read(make([]byte, 1))
			require.ErrorIs(t, err, syscall.ECONNRESET)
		}
		now, nowPeer := pair(t, n)
		_, err = now.Write([]byte{2})
		require.NoError(t, err)
		n.Host(1).Forget(false)
		_, err = idle.Write([]byte{3})
		require.NoError(t, err)
		for value, c := range map[byte]net.Conn{2: nowPeer, 3: idlePeer} {
			x := []byte{0}
			_, err = c.Read(x)
			require.NoError(t, err)
			require.Equal(t, value, x[0])
		}
	})
}

// A stopped process takes no step. One that has ended closes its connections and listeners, unless it is silent.
func TestStopAndKill(t *testing.T) {
	for _, silent := range []bool{false, true} {
		inBubble(t, func(t *testing.T, n *Net) {
			a, b := pair(t, n)
			began := time.Now()
			n.Host(1).Stop()
			time.AfterFunc(time.Hour, n.Host(1).Go)
			_, err := a.Write([]byte{1})
			require.NoError(t, err)
			_, err = b.Read(make([]byte, 1))
			require.NoError(t, err)
			require.Equal(t, time.Hour, time.Since(began))
			n.Host(1).Kill(silent)
			require.True(t, n.Host(1).Ended())
			ended := make(chan error, 1)
			go func() {
				_, err := b.Read(make([]byte, 1))
				ended <- err
			}()
			a.SetReadDeadline(time.Now().Add(time.Minute))
			_, err = a.Read(make([]byte, 1))
			if silent {
				require.ErrorContains(t, err, "i/o timeout")
			} else {
				require.Equal(t, io.EOF, err)
			}
			synctest.Wait()
			require.Empty(t, ended)
			n.Host(1).Bury()
			require.Error(t, <-ended)
		})
	}
}

// With a Grid what is sent comes at its multiples alone, however it was sent.
func TestGrid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, 2, Link{Delay: 3 * time.Millisecond, Jitter: time.Millisecond, Grid: 5 * time.Millisecond})
		began := time.Now()
		a, b := pair(t, n)
		require.Equal(t, 10*time.Millisecond, time.Since(began), "there and back")
		for i := range 3 {
			time.Sleep(700 * time.Microsecond)
			_, err := a.Write([]byte{1})
			require.NoError(t, err)
			_, err = b.Read(make([]byte, 1))
			require.NoError(t, err)
			require.Equal(t, time.Duration(15+5*i)*time.Millisecond, time.Since(began))
		}
	})
}

// Hosts without a route are told so at once, on both sides, and reach others.
func TestUnroute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := New(1, 3, Link{Delay: time.Millisecond})
		n.Unroute(0, 1)
		for i := range 3 {
			l, err := n.Host(i).Listen("0.0.0.0:7")
			require.NoError(t, err)
			defer l.Close()
			for j := range i {
				for _, way := range [][2]int{{i, j}, {j, i}} {
					c, err := n.Host(way[0]).Dial(t.Context(), net.JoinHostPort(n.Host(way[1]).Addr().String(), "7"))
					if i == 1 {
						require.ErrorIs(t, err, syscall.EHOSTUNREACH, "%v", way)
						continue
					}
					require.NoError(t, err)
					c.Close()
				}
			}
		}
	})
}
