package boot

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// noSecret is that of a job which has none, and secretOf that of one which has it.
var noSecret = secretOf("")

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

// interruptIsIgnored says that this process was started so, as one is in a script's background: the ranks inherit that.
var interruptIsIgnored bool

// TestMain lets the test binary be a rank that Spawn starts; see spawn_test.go.
func TestMain(m *testing.M) {
	if role := os.Getenv("BOOT_TEST_ROLE"); role != "" {
		os.Exit(play(role))
	}
	interruptIsIgnored = signal.Ignored(os.Interrupt) // which Notify forgets
	// The goroutine of os/signal stays once it has been started: no leak of ours.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt)
	signal.Stop(signals)
	os.Exit(m.Run())
}

// noLeaks requires that a test leaves no goroutine behind.
func noLeaks(t testing.TB) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for end := time.Now().Add(10 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), stacks())
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// stacks are those of all goroutines.
func stacks() []byte {
	b := make([]byte, 1<<20)
	return b[:runtime.Stack(b, true)]
}

// freeRoot returns a host:port of this host that is free. It lies below the ports that the kernel gives to programs that ask
// for any (32768 and more on Linux): those of other tests would find each other there.
func freeRoot(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 15_000+rand.IntN(15_000))
		if l, err := net.Listen("tcp", addr); err == nil {
			require.NoError(t, l.Close())
			return addr
		}
	}
	require.Fail(t, "100 ports are taken")
	return ""
}

// portOf is the port of host:port.
func portOf(t testing.TB, addr string) int {
	t.Helper()
	at, err := netip.ParseAddrPort(addr)
	require.NoError(t, err)
	return int(at.Port())
}

// answering has do called, one after the other, with the connections that come to l until the test
// is over, and closes them.
func answering(t testing.TB, l net.Listener, do func(net.Conn)) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			do(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// rootFor is the root server of size ranks, its address, and the connection of rank 0.
func rootFor(t testing.TB, size int, job, secret string) (h *rootServer, addr string, local *auth.Stream) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	h = newRootServer(selfJoin(0, size), job)
	local = h.start(l, secretOf(secret))
	t.Cleanup(h.close)
	return h, l.Addr().String(), local
}

// dialerTo looks for rank 0 at addrs, as rank of size ranks.
func dialerTo(rank, size int, job, secret string, addrs ...string) *dialer {
	return &dialer{job: job, self: selfJoin(rank, size), find: func() (point, error) {
		return point{network: "tcp", addrs: addrs, secret: secretOf(secret)}, nil
	}}
}

// all runs f as each of n ranks and returns what each returned.
func all(n int, f func(rank int) (*Boot, error)) ([]*Boot, []error) {
	boots, errs := make([]*Boot, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() { boots[r], errs[r] = f(r) })
	}
	wg.Wait()
	return boots, errs
}

// joined is all, where all have to succeed.
func joined(t testing.TB, n int, f func(rank int) (*Boot, error)) []*Boot {
	t.Helper()
	boots, errs := all(n, f)
	t.Cleanup(func() { closeAll(boots) })
	for r, err := range errs {
		require.NoError(t, err)
		require.Equal(t, r, boots[r].Rank())
		require.Equal(t, n, boots[r].Size())
	}
	return boots
}

func closeAll(boots []*Boot) {
	for _, b := range boots {
		if b != nil {
			b.Close()
		}
	}
}

// swap does an AllGather on all and requires the right answer.
func swap(t testing.TB, boots []*Boot) {
	t.Helper()
	want := make([][]byte, len(boots))
	for r := range want {
		want[r] = fmt.Appendf(nil, "of rank %d", r)
	}
	late := time.AfterFunc(long/2, func() { t.Logf("half of the time for an AllGather is over:\n%s", stacks()) })
	defer late.Stop()
	got, errs := gather(within(t, long), boots, want)
	for r := range boots {
		require.NoError(t, errs[r])
		require.Equal(t, want, got[r])
	}
}

// gather does an AllGather on all that are not nil.
func gather(ctx context.Context, boots []*Boot, values [][]byte) ([][][]byte, []error) {
	got, errs := make([][][]byte, len(boots)), make([]error, len(boots))
	var wg sync.WaitGroup
	for r, b := range boots {
		if b != nil {
			wg.Go(func() { got[r], errs[r] = b.AllGather(ctx, values[r]) })
		}
	}
	wg.Wait()
	return got, errs
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// long is a deadline that no test is meant to reach.
const long = 30 * time.Second

// wantError requires an error of this package, and returns it.
func wantError(t testing.TB, err error, code Code, rank, peer int) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, code, e.Code, "%v", err)
	require.ErrorIs(t, err, code)
	require.Equal(t, rank, e.Rank, "%v", err)
	require.Equal(t, peer, e.Peer, "%v", err)
	return e
}
