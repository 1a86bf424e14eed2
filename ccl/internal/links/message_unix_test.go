//go:build unix && !aix

package links

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
)

// connected are the two ends of a connection.
func connected(t *testing.T) (a, b *tcp.Conn) {
	t.Helper()
	listen := func() *tcp.Node {
		n, err := tcp.Listen(t.Name(), auth.Given([]byte("secret")), auth.Plain, netip.MustParseAddr("127.0.0.1"))
		require.NoError(t, err)
		t.Cleanup(func() { n.Close() })
		return n
	}
	from, to := listen(), listen()
	key := tcp.MakeKey(1, 2, 0, 1)
	var fault error
	done := make(chan struct{})
	go func() {
		a, fault = from.Open(t.Context(), key, 0, to.Addr())
		close(done)
	}()
	b, err := to.Open(t.Context(), key, 1, from.Addr())
	<-done
	require.NoError(t, err)
	require.NoError(t, fault)
	t.Cleanup(a.Abort)
	t.Cleanup(b.Abort)
	return a, b
}

// A step that can only wait for other hosts sleeps until a message can move whose turn it is, whichever that is.
func TestAwait(t *testing.T) {
	const short = 20 * time.Millisecond
	quiet, _ := connected(t)
	a, b := connected(t)
	full, drain := connected(t)
	for times := 0; times < 3; { // the kernel moves bytes on, and has room again
		n, err := full.TrySend(make([]byte, 1<<20))
		require.NoError(t, err)
		if times++; n > 0 {
			times = 0
		}
		var w tcp.Waits
		w.Add(full, true)
		w.Wait(short)
	}
	_, err := b.TrySend([]byte("xy"))
	require.NoError(t, err)
	_, err = drain.TrySend([]byte("xy"))
	require.NoError(t, err)

	in := func(conn *tcp.Conn, turn uint64) *receiver { return &receiver{l: &Link{conn: conn}, turn: turn} }
	out := func(conn *tcp.Conn, turn uint64) *sender { return &sender{l: &Link{conn: conn}, turn: turn} }
	for _, tc := range []struct {
		name string
		tx   []*sender
		rx   []*receiver
		soon bool
	}{
		{"something has come", nil, []*receiver{in(quiet, 0), in(a, 0)}, true},
		{"for another message", nil, []*receiver{in(quiet, 0), in(a, 1)}, false},
		{"there is room", []*sender{out(full, 0), out(quiet, 0)}, nil, true},
		{"for another message", []*sender{out(full, 0), out(quiet, 1)}, nil, false},
		{"what has come does not make room", []*sender{out(full, 0)}, nil, false},
		{"room does not bring anything", nil, []*receiver{in(quiet, 0)}, false},
		{"a send and a receive", []*sender{out(full, 0)}, []*receiver{in(a, 0)}, true},
	} {
		c := messages{tx: tc.tx, rx: tc.rx}
		began := time.Now()
		require.True(t, c.Await(map[bool]time.Duration{true: time.Hour, false: short}[tc.soon]), tc.name)
		if !tc.soon {
			assert.GreaterOrEqual(t, time.Since(began), short, tc.name)
		}
	}
	var c messages
	require.False(t, c.Await(time.Hour), "there is nothing to sleep for")
}

// untilSlept is a context whose time is over once c has slept on a connection.
type untilSlept struct {
	context.Context
	c *Links
}

func (u untilSlept) Err() error {
	if !reflect.ValueOf(u.c.Messages.waits).IsZero() {
		return context.DeadlineExceeded
	}
	return u.Context.Err()
}

// moveBriefly waits for messages that do not come: on conn, and, if here, on a pipe of this host.
func moveBriefly(ctx context.Context, c *Links, conn *tcp.Conn, here bool) *call.Fault {
	c.Messages.Begin()
	c.Messages.newReceiver().start(&Link{peer: 1, conn: conn, in: Stream{conn}}, head{}, make([]byte, 8))
	if here {
		l, f := c.Ends.Link(ctx, 1, collective)
		if f != nil {
			return f
		}
		c.Messages.newReceiver().start(l, head{}, make([]byte, 8))
	}
	return c.Messages.Move(ctx)
}

// A step that can only wait for other hosts sleeps so, and one that may move something inside this host does not.
func TestMoveSleeps(t *testing.T) {
	conn, _ := connected(t)
	for _, here := range []bool{false, true} {
		t.Run(fmt.Sprintf("here %v", here), func(t *testing.T) {
			ranks := ranksOf(t, 2, plane.Options{})
			c := ranks[0]
			atOnce(t, ranks[:1], func(c *Links) *call.Fault {
				return made(c, callOf(call.Barrier, -1, 0, nil, nil), func(ctx context.Context, k *call.Call) *call.Fault {
					limit := time.Minute
					if here {
						limit = 50 * time.Millisecond
					}
					ctx, cancel := context.WithTimeout(ctx, limit)
					defer cancel()
					if f := moveBriefly(untilSlept{ctx, c}, c, conn, here); f == nil || f.Code != call.Timeout {
						t.Errorf("%v", f)
					}
					return nil
				})
			})
			require.Equal(t, here, reflect.ValueOf(c.Messages.waits).IsZero(), "it has slept on no connection")
		})
	}
}
