package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/require"
)

// silent is a listener that accepts nobody.
func silent(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}

// hubAt starts a root server for two ranks and returns its address.
func hubAt(t *testing.T, job, secret string) string {
	_, addr, _ := rootFor(t, 2, job, secret)
	return addr
}

func TestDial(t *testing.T) {
	right := hubAt(t, "job", sesame)
	for _, tc := range []struct {
		name  string
		addrs []string
	}{
		{"the first", []string{right}},
		{"behind one that is closed", []string{freeRoot(t), right}},
		{"behind one that is silent", []string{silent(t), right}},
		{"behind another job", []string{hubAt(t, "other", sesame), right}},
		{"behind another secret", []string{hubAt(t, "job", "x"), right}},
		{"behind all of them", []string{freeRoot(t), silent(t), hubAt(t, "other", sesame), hubAt(t, "job", "x"), right}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			conn, p, err := dialerTo(1, 2, "job", sesame, tc.addrs...).dial(within(t, long))
			require.NoError(t, err)
			require.Equal(t, right, conn.RemoteAddr().String())
			require.Equal(t, selfJoin(0, 2), p.who)
			conn.Close()
		})
	}
}

// web is the address of another service.
func web(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	answering(t, l, func(conn net.Conn) {
		conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"))
		io.Copy(io.Discard, io.LimitReader(conn, 16))
	})
	return l.Addr().String()
}

// closedPort is an address that refuses connections for as long as the test runs: the near end of one, so that no
// listener of another program can take it.
func closedPort(t *testing.T) string {
	conn, err := net.Dial("tcp", silent(t))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	return conn.LocalAddr().String()
}

// untilAgain is a context that reaches its deadline when again is called for the second time: after the first round of
// a search, however long that takes.
type untilAgain struct {
	context.Context
	calls  atomic.Int32
	passed chan struct{}
}

func (c *untilAgain) again() {
	if c.calls.Add(1) == 2 {
		close(c.passed)
	}
}

func (c *untilAgain) Done() <-chan struct{} { return c.passed }

func (c *untilAgain) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func TestDialFails(t *testing.T) {
	const refused = "connect: connection refused"
	closed := closedPort(t)
	for _, tc := range []struct {
		name  string
		addrs []string
		fixed bool
		code  Code
		text  string
	}{
		{"nobody", []string{closed}, true, Timeout, refused},
		{"another secret", []string{hubAt(t, "job", "x")}, true, Unauthorized, "the job's secret differs"},
		{"another secret at a derived port", []string{hubAt(t, "job", "x"), closed}, false, Timeout, "the job's secret differs"},
		{"another job", []string{hubAt(t, "other", sesame)}, true, Timeout, "a goccl peer of another job"},
		{"another service", []string{web(t)}, true, Timeout, "A service other than goccl accepts connections at"},
		{"a name without an address", []string{"no-such-host.invalid:1"}, true, Timeout, "set GOCCL_ROOT=ADDRESS:PORT on all ranks, with an address of rank 0's host"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			ctx := &untilAgain{Context: context.Background(), passed: make(chan struct{})}
			f := &dialer{job: "job", self: selfJoin(1, 2), fixed: tc.fixed, find: func() (point, error) {
				ctx.again()
				return point{network: "tcp", addrs: tc.addrs, secret: secretOf(sesame)}, nil
			}}
			_, _, err := f.dial(ctx)
			require.ErrorIs(t, err, tc.code)
			require.ErrorContains(t, err, tc.text)
			require.ErrorContains(t, err, tc.addrs[0])
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &dialer{find: func() (point, error) { return point{}, errors.New("not yet") }}
	_, _, err := f.dial(ctx)
	require.ErrorIs(t, err, Canceled)
	require.ErrorIs(t, err, context.Canceled)
}

// A host without an address is told of after a while: as the end where it gets none, as under Slurm, else as a warning, once.
func TestDialUnnamed(t *testing.T) {
	for _, final := range []bool{true, false} {
		ctx, n := &untilAgain{Context: context.Background(), passed: make(chan struct{})}, 0
		f := &dialer{job: "job", self: selfJoin(1, 2), find: func() (point, error) {
			n++
			if !final {
				ctx.again()
			}
			return point{network: "tcp", addrs: []string{"no-such-host.invalid:1"}, secret: secretOf(sesame), final: final}, nil
		}}
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		_, _, err := f.dial(ctx)
		slog.SetDefault(before)
		require.ErrorIs(t, err, Timeout)
		require.ErrorContains(t, err, "under Slurm, NodeAddr in scontrol show node")
		if final {
			require.Equal(t, 1, n)
			require.Empty(t, log.String())
		} else {
			require.Equal(t, 1, strings.Count(log.String(), "so far rank 0 was not found at no-such-host.invalid:1"), log.String())
		}
	}
}

// A rank with a limit gives up after it where it makes no connection, and looks on where it makes one.
func TestDialLimit(t *testing.T) {
	for addr, tries := range map[string]int{closedPort(t): 1, web(t): 2} {
		ctx, n := &untilAgain{Context: context.Background(), passed: make(chan struct{})}, 0
		f := &dialer{job: "job", self: selfJoin(1, 2), fixed: true, limit: 1, find: func() (point, error) {
			n++
			ctx.again()
			return point{network: "tcp", addrs: []string{addr}, secret: secretOf(sesame)}, nil
		}}
		_, _, err := f.dial(ctx)
		require.ErrorIs(t, err, Timeout)
		require.ErrorContains(t, err, "rank 0 was not found at "+addr)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, []int{0}, e.Missing)
		require.Equal(t, tries, n)
	}
}

// A connection that the deadline cuts off before it is made says nothing of who listens there.
func TestCutOffDialMeetsNobody(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	f := &dialer{job: "job", self: selfJoin(1, 2)}
	r := f.try(ctx, point{network: "tcp"}, silent(t))
	require.Error(t, r.err)
	require.Nil(t, f.stranger.Load())
}

// What answers at the door of a relay says nothing about the port of rank 0.
func TestStrangeDoorIsNoStranger(t *testing.T) {
	branching(t, 1)
	noLeaks(t)
	root := hubAt(t, "", sesame)
	relayAt(t, root, 1, 2, portOf(t, web(t)))
	f := &dialer{self: selfJoin(2, 2)}
	r := f.try(within(t, long), point{network: "tcp", secret: secretOf(sesame)}, root)
	var away *detour
	require.ErrorAs(t, r.err, &away)
	require.Nil(t, f.stranger.Load())
}

func TestTelling(t *testing.T) {
	order := []error{nil, net.ErrClosed, fmt.Errorf("x: %w", auth.ErrJob), auth.ErrUnauthorized}
	for i := range order[1:] {
		require.Less(t, telling(order[i]), telling(order[i+1]))
	}
}

// A rank that met somebody whose process the kernel does not tell says that a secret would.
func TestUntoldIsSaid(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	<-ctx.Done()
	err := new(dialer).unreachable(ctx, "@goccl-1", time.Second, fmt.Errorf("%w: it runs elsewhere; give all ranks one", auth.ErrUntold))
	require.Equal(t, "rank 0 was not found at @goccl-1 within 1s: the kernel does not tell whose process this is: it runs elsewhere; give all ranks one."+
		" A secret tells ranks from strangers, whatever containers they are in", err.Text)
	require.Greater(t, telling(auth.ErrUntold), telling(auth.ErrUser))
	require.Greater(t, telling(auth.ErrUser), telling(errors.New("refused")))
}
