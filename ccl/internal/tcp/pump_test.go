package tcp

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// Calls that move nothing count; each 32nd in a row rests for 20 us, and one that moves something begins the count anew.
func TestIdler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var i idler
		calls := func(n int, moved bool) (took time.Duration) {
			began := time.Now()
			for range n {
				i.rest(moved)
			}
			return time.Since(began)
		}
		require.Zero(t, calls(31, false))
		require.Zero(t, calls(1, true))
		require.Zero(t, calls(31, false))
		require.Equal(t, 20*time.Microsecond, calls(1, false))
		require.Equal(t, 40*time.Microsecond, calls(64, false))
	})
}

// idle is a pump without goroutines, whose rings have so many bytes.
func idle(in, out string) *pump {
	p := &pump{in: newRing(8), out: newRing(8), flushed: make(chan struct{})}
	p.moved.L = &p.mu
	p.in.put(copy(p.in.free(), in))
	p.out.put(copy(p.out.free(), out))
	return p
}

// ending is p of which one direction has ended.
func ending(p *pump, in bool) *pump {
	if in {
		p.inErr = io.EOF
	} else {
		p.outErr = net.ErrClosed
	}
	return p
}

// What a caller gets depends on what is in the rings, and on how the stream has ended: bytes that came before the end are
// received first.
func TestPumpTakesAndGives(t *testing.T) {
	end := errors.New("the end")
	for _, tc := range []struct {
		name             string
		change           func(p *pump)
		in, out          string
		sent             int
		sendErr, recvErr error
		got              string
	}{
		{"empty", func(*pump) {}, "", "", 5, nil, nil, ""},
		{"some of each", func(*pump) {}, "abc", "1234", 4, nil, nil, "abc"},
		{"full", func(*pump) {}, "abcdefgh", "12345678", 0, nil, nil, "abcdefgh"},
		{"nothing more comes", func(p *pump) { p.inErr = end }, "", "", 5, nil, end, ""},
		{"the last bytes", func(p *pump) { p.inErr = end }, "ab", "", 5, nil, nil, "ab"},
		{"nothing more goes", func(p *pump) { p.outErr = end }, "ab", "", 0, end, nil, "ab"},
		{"closed", func(p *pump) { p.closed = true }, "ab", "", 0, net.ErrClosed, net.ErrClosed, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := idle(tc.in, tc.out)
			tc.change(p)
			n, err := p.TrySend([]byte("ABCDE"))
			require.Equal(t, tc.sent, n)
			require.Equal(t, tc.sendErr, err)
			if err == nil {
				require.Equal(t, tc.out+"ABCDE"[:n], string(p.out.filled()))
			}
			b := make([]byte, 9)
			n, err = p.TryRecv(b)
			require.Equal(t, tc.got, string(b[:n]))
			require.Equal(t, tc.recvErr, err)
			n, err = p.TryRecv(nil)
			require.Zero(t, n)
			if !p.closed {
				require.NoError(t, err, "the end is told to a caller that has room")
			}
		})
	}
}

// The second buffer moves once the first is done; an error of the first is told, and one of the second when it comes again.
func TestEachOfBoth(t *testing.T) {
	failed := errors.New("it failed")
	for _, tc := range []struct {
		name  string
		moves []int // bytes that each call moves; -1: it fails
		want  int
		err   error
		calls string
	}{
		{"both", []int{3, 2}, 5, nil, "abc de"},
		{"the first, in part", []int{2}, 2, nil, "abc"},
		{"nothing", []int{0}, 0, nil, "abc"},
		{"the first, and some of the second", []int{3, 1}, 4, nil, "abc de"},
		{"the first fails", []int{-1}, 0, failed, "abc"},
		{"the second fails", []int{3, -1}, 3, nil, "abc de"},
	} {
		var calls []string
		n, err := eachOfBoth([]byte("abc"), []byte("de"), func(b []byte) (int, error) {
			calls = append(calls, string(b))
			if m := tc.moves[len(calls)-1]; m >= 0 {
				return m, nil
			}
			return 0, failed
		})
		require.Equal(t, tc.want, n, tc.name)
		require.Equal(t, tc.err, err, tc.name)
		require.Equal(t, tc.calls, strings.Join(calls, " "), tc.name)
	}
}

// A Wait ends at once where there is something to do, and else when told so, not when told of what it does not wait for.
func TestPumpWait(t *testing.T) {
	for _, tc := range []struct {
		name        string
		p           *pump
		read, write bool // whether such a wait is ready
	}{
		{"nothing came, and there is room", idle("", "12"), false, true},
		{"nothing came, and there is none", idle("", "12345678"), false, false},
		{"something came", idle("a", "12345678"), true, true},
		{"nothing more comes", ending(idle("", "12345678"), true), true, true},
		{"nothing more goes", ending(idle("", "12345678"), false), false, true},
	} {
		require.Equal(t, tc.read, tc.p.ready(false), tc.name)
		require.Equal(t, tc.write, tc.p.ready(true), tc.name)
	}
	p := idle("", "12345678")
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { p.Wait(time.Minute, false); close(done) })
	p.mu.Lock()
	p.out.take(4)
	p.mu.Unlock()
	for range 10 { // of room, for which nobody waits; again and again, since when the Wait begins is not known
		p.mu.Lock()
		p.moved.Broadcast()
		p.mu.Unlock()
		select {
		case <-done:
			t.Fatal("it returned though nothing has come")
		case <-time.After(time.Millisecond):
		}
	}
	p.mu.Lock()
	p.in.put(1)
	p.moved.Broadcast()
	p.mu.Unlock()
	wg.Wait()
	p.Wait(0, true)
	p.Wait(time.Millisecond, false)
}
