package tcp

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// stream is what Conn and pump have in common.
type stream interface {
	TrySend([]byte) (int, error)
	TryRecv([]byte) (int, error)
	TrySendBoth(a, b []byte) (int, error)
	TryRecvBoth(a, b []byte) (int, error)
	Close() error
	Abort()
}

// waitFor waits for something to receive, or with write also for room to send.
func waitFor(s stream, d time.Duration, write bool) {
	if p, ok := s.(interface{ Wait(time.Duration, bool) }); ok {
		p.Wait(d, write)
		return
	}
	var w Waits
	w.Add(s.(*Conn), false)
	if write {
		w.Add(s.(*Conn), true)
	}
	w.Wait(d)
}

// forms are the forms of a Conn: that of this platform, with and without a seal, and the pump.
var forms = []struct {
	name string
	make func(t testing.TB) (a, b stream)
}{
	{"conn", func(t testing.TB) (a, b stream) { return wired(t, auth.Plain) }},
	{"sealed", func(t testing.TB) (a, b stream) { return wired(t, auth.Encrypt) }},
	{"pump", func(t testing.TB) (a, b stream) {
		ta, tb := connected(t)
		return newPump(ta), newPump(tb)
	}},
}

// wired returns both ends of a stream whose data travel as w says.
func wired(t testing.TB, w auth.Wire) (a, b *Conn) {
	sa, sb := streams(t)
	a, err := takeConn(sa, w)
	require.NoError(t, err)
	b, err = takeConn(sb, w)
	require.NoError(t, err)
	return a, b
}

// eachForm runs test with the two ends of a stream, in each form, and checks that
// nothing is left of them.
func eachForm(t *testing.T, test func(t *testing.T, a, b stream)) {
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			checkLeaks(t)
			a, b := f.make(t)
			t.Cleanup(func() {
				// At once: an end that lingers waits for the other.
				var wg sync.WaitGroup
				wg.Go(func() { a.Close() })
				wg.Go(func() { b.Close() })
				wg.Wait()
			})
			test(t, a, b)
		})
	}
}

// connected returns both ends of a TCP connection.
func connected(t testing.TB) (a, b *net.TCPConn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	d, err := l.Accept()
	require.NoError(t, err)
	return c.(*net.TCPConn), d.(*net.TCPConn)
}

// checkLeaks fails t if it leaves goroutines or open files behind.
func checkLeaks(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // opens the poller's own files
	require.NoError(t, err)
	l.Close()
	count := func() (goroutines, files int) {
		names, _ := os.ReadDir("/proc/self/fd") // empty but on Linux
		return runtime.NumGoroutine(), len(names)
	}
	g0, f0 := count()
	t.Cleanup(func() {
		var g, f int
		if !eventually(func() bool { g, f = count(); return g <= g0 && f <= f0 }) {
			stacks := make([]byte, 1<<20)
			t.Errorf("%d goroutines and %d files, before the test %d and %d\n%s",
				g, f, g0, f0, stacks[:runtime.Stack(stacks, true)])
		}
	})
}

// eventually polls a condition, for some seconds at most.
func eventually(cond func() bool) bool {
	for end := time.Now().Add(10 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// sendAll sends b in pieces of random size, as the stream takes them.
func sendAll(s stream, b []byte) error { return moveAll(s, b, s.TrySend, true, 1) }

// recvAll fills b.
func recvAll(s stream, b []byte) error { return moveAll(s, b, s.TryRecv, false, 2) }

func moveAll(s stream, b []byte, try func([]byte) (int, error), sends bool, seed uint64) error {
	rnd := rand.New(rand.NewPCG(uint64(len(b)), seed))
	for len(b) > 0 {
		n, err := try(b[:min(len(b), 1+rnd.IntN(1<<20))])
		if err != nil {
			return err
		}
		if b = b[n:]; n == 0 {
			waitFor(s, 10*time.Second, sends)
		}
	}
	return nil
}

// recvError receives until an error comes, and returns how many bytes that were.
func recvError(s stream) (total int, err error) {
	b := make([]byte, 64<<10)
	for {
		n, err := s.TryRecv(b)
		if total += n; err != nil {
			return total, err
		}
		if n == 0 {
			waitFor(s, 10*time.Second, false)
		}
	}
}

// pattern is n bytes without a short period.
func pattern(seed byte, n int) []byte {
	b := make([]byte, n)
	x := uint32(seed) + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func TestTransferBothWays(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		const n = 24 << 20
		x, y := pattern(1, n), pattern(2, n)
		gotX, gotY := make([]byte, n), make([]byte, n)
		errs := make(chan error, 4)
		go func() { errs <- sendAll(a, x) }()
		go func() { errs <- sendAll(b, y) }()
		go func() { errs <- recvAll(b, gotX) }()
		go func() { errs <- recvAll(a, gotY) }()
		for range 4 {
			require.NoError(t, <-errs)
		}
		require.True(t, string(x) == string(gotX), "the bytes from a to b differ")
		require.True(t, string(y) == string(gotY), "the bytes from b to a differ")
	})
}

// plenty is more than a connection holds.
var plenty = sync.OnceValue(func() []byte { return pattern(3, 32<<20) })

// fill sends until no more goes out, and returns what was sent.
func fill(t *testing.T, s stream) []byte {
	data := plenty()
	sent := 0
	for full := 0; full < 3; { // the kernel moves bytes on, and has room again
		n, err := s.TrySend(data[sent:])
		require.NoError(t, err)
		if sent += n; n == 0 {
			full++
			waitFor(s, 10*time.Millisecond, true)
		} else {
			full = 0
		}
	}
	require.Less(t, sent, len(data))
	return data[:sent]
}

func TestSendToNobodyIsPartial(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		sent := fill(t, a)
		got := make([]byte, len(sent))
		require.NoError(t, recvAll(b, got))
		require.True(t, string(sent) == string(got))
		n, err := b.TryRecv(got)
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

func TestEmpty(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		n, err := a.TrySend(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = a.TryRecv(nil)
		require.NoError(t, err)
		require.Zero(t, n)
		n, err = a.TryRecv(make([]byte, 1))
		require.NoError(t, err)
		require.Zero(t, n)
	})
}

// TestBoth: pairs of buffers, cut elsewhere on either side, carry the same bytes; the end is told as by the other calls.
func TestBoth(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		data := pattern(7, 3<<20)
		halves := func(rnd *rand.Rand, b []byte) (x, y []byte) {
			b = b[:min(len(b), 2+rnd.IntN(1<<20))]
			at := 1 + rnd.IntN(len(b)-1)
			return b[:at], b[at:]
		}
		got := make([]byte, len(data))
		var wg sync.WaitGroup
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(1, 3))
			for rest := data; len(rest) > 0; {
				var n int
				var err error
				if len(rest) == 1 {
					n, err = a.TrySend(rest)
				} else {
					n, err = a.TrySendBoth(halves(rnd, rest))
				}
				if err != nil {
					t.Error(err)
					return
				}
				if rest = rest[n:]; n == 0 {
					waitFor(a, 10*time.Second, true)
				}
			}
		})
		rnd := rand.New(rand.NewPCG(2, 3))
		for rest := got; len(rest) > 0; {
			var n int
			var err error
			if len(rest) == 1 {
				n, err = b.TryRecv(rest)
			} else {
				n, err = b.TryRecvBoth(halves(rnd, rest))
			}
			require.NoError(t, err)
			if rest = rest[n:]; n == 0 {
				waitFor(b, 10*time.Second, false)
			}
		}
		wg.Wait()
		require.True(t, bytes.Equal(data, got))

		x, y := make([]byte, 3), make([]byte, 5)
		n, err := b.TryRecvBoth(x, y)
		require.NoError(t, err)
		require.Zero(t, n)
		a.Close()
		require.True(t, eventually(func() bool { _, err = b.TryRecvBoth(x, y); return err != nil }))
		require.ErrorIs(t, err, io.EOF)
		_, err = a.TrySendBoth(x, y)
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.TryRecvBoth(x, y)
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestCloseDelivers: all that was sent arrives, then the end, though the closing
// side has not received what it was sent.
func TestCloseDelivers(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		require.NoError(t, sendAll(b, []byte("never read")))
		require.NoError(t, recvAll(a, make([]byte, 1))) // it is there
		sent := fill(t, a)
		type result struct {
			n   int
			err error
		}
		got := make(chan result, 1)
		go func() {
			n, err := recvError(b)
			got <- result{n, err}
		}()
		require.NoError(t, a.Close())
		require.NoError(t, a.Close())
		a.Abort() // too late to matter
		require.Equal(t, result{len(sent), io.EOF}, <-got)

		_, err := a.TrySend([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
		_, err = a.TryRecv(make([]byte, 1))
		require.ErrorIs(t, err, net.ErrClosed)
		waitFor(a, time.Hour, true)
	})
}

func TestAbort(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		fill(t, a)
		a.Abort()
		a.Abort()
		require.NoError(t, a.Close())
		_, err := recvError(b)
		require.Error(t, err)
		require.NotErrorIs(t, err, io.EOF)
		require.ErrorContains(t, err, "tcp: receiving from 127.0.0.1:")
		require.True(t, eventually(func() bool { _, err = b.TrySend([]byte("x")); return err != nil }))
		_, err = a.TrySend([]byte("x"))
		require.ErrorIs(t, err, net.ErrClosed)
	})
}

// TestCloseUnderCalls closes streams while others send, receive and wait on them,
// and while files are opened that take the numbers of those closed: no call may
// ever reach such a file.
func TestCloseUnderCalls(t *testing.T) {
	dir := t.TempDir()
	for _, f := range forms {
		t.Run(f.name, func(t *testing.T) {
			checkLeaks(t)
			for i := range 100 {
				a, b := f.make(t)
				errs := make(chan error, 3)
				var started sync.WaitGroup
				started.Add(3)
				go func() {
					started.Done()
					for {
						if _, err := a.TrySend([]byte("hello")); err != nil {
							errs <- err
							return
						}
					}
				}()
				go func() {
					started.Done()
					buf := make([]byte, 10)
					for {
						if _, err := a.TryRecv(buf); err != nil {
							errs <- err
							return
						}
					}
				}()
				go func() {
					started.Done()
					waitFor(a, time.Hour, false)
					errs <- net.ErrClosed
				}()
				started.Wait()
				if i%2 == 0 {
					a.Close()
				} else {
					a.Abort()
				}
				var files []*os.File
				for j := range 8 {
					file, err := os.Create(filepath.Join(dir, fmt.Sprint(j)))
					require.NoError(t, err)
					files = append(files, file)
				}
				for range 3 {
					require.ErrorIs(t, <-errs, net.ErrClosed)
				}
				b.Close()
				for _, file := range files {
					file.Close()
				}
			}
		})
	}
}

func TestNoAllocations(t *testing.T) {
	eachForm(t, func(t *testing.T, a, b stream) {
		x, y := make([]byte, 4096), make([]byte, 4096)
		allocs := testing.AllocsPerRun(100, func() {
			if _, err := a.TrySend(x); err != nil {
				t.Error(err)
			}
			for got := 0; got < len(y); {
				n, err := b.TryRecv(y[got:])
				if err != nil {
					t.Error(err)
					return
				}
				if got += n; n == 0 {
					runtime.Gosched() // the pump's goroutines need a processor
				}
			}
			if n, err := b.TryRecv(y); n != 0 || err != nil {
				t.Error(n, err)
			}
		})
		require.Zero(t, allocs)
	})
}

// BenchmarkRoundTrip is 8 bytes there and back, by spinning.
func BenchmarkRoundTrip(b *testing.B) {
	for _, f := range forms {
		b.Run(f.name, func(b *testing.B) {
			x, y := f.make(b)
			go func() {
				defer y.Close()
				var buf [8]byte
				for {
					n, err := y.TryRecv(buf[:])
					if err != nil {
						return
					}
					if n > 0 {
						y.TrySend(buf[:n])
					}
				}
			}()
			var buf [8]byte
			for b.Loop() {
				x.TrySend(buf[:])
				for got := 0; got < len(buf); {
					n, err := x.TryRecv(buf[:])
					if err != nil {
						b.Fatal(err)
					}
					got += n
				}
			}
			x.Close()
		})
	}
}
