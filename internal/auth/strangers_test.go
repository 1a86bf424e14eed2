package auth

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// closing is a connection that notes its Close.
type closing struct {
	net.Conn
	shut atomic.Bool
}

func (c *closing) Close() error         { c.shut.Store(true); return nil }
func (c *closing) closed() bool         { return c.shut.Load() }
func (c *closing) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 9} }

func ignore(string, ...any) {}

func TestStrangersMakeRoom(t *testing.T) {
	s := newStrangers("port", 2, 0, ignore) // no patience: the oldest goes at once
	a, b, c, d := &closing{}, &closing{}, &closing{}, &closing{}
	inA := s.Admit(a)
	inB := s.Admit(b)
	require.False(t, a.closed())
	s.Admit(c)
	require.True(t, a.closed())
	require.False(t, b.closed())

	require.False(t, inA.Leave())
	require.True(t, inB.Leave()) // known now: its place is free
	require.False(t, inB.Leave())
	s.Admit(d)
	require.False(t, b.closed() || c.closed() || d.closed())
	require.Equal(t, 2, s.list.Len())

	s.MakeRoom()
	require.True(t, c.closed())
	require.False(t, d.closed())
	s.Close()
	s.Close()
	require.True(t, d.closed())
	require.Nil(t, s.Admit(b))
	require.True(t, b.closed())
}

func TestStrangersWaitForRoom(t *testing.T) {
	s := newStrangers("port", 1, time.Hour, ignore)
	a, b := &closing{}, &closing{}
	inA := s.Admit(a)
	admitted := make(chan struct{})
	go func() {
		s.Admit(b)
		close(admitted)
	}()
	require.True(t, inA.Leave())
	<-admitted
	require.False(t, a.closed() || b.closed())

	waits := make(chan *Stranger)
	c := &closing{}
	go func() { waits <- s.Admit(c) }()
	s.Close()
	require.Nil(t, <-waits)
	require.True(t, b.closed() && c.closed())
}

// Who tries secrets, however fast, gets as many tries as there are places in each patience, and one who knows the secret
// waits no longer than that.
func TestGuessesAreSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const places = 4
		s := newStrangers("port", places, patience, ignore)
		guesses := 0
		for began := time.Now(); time.Since(began) < 10*time.Second; guesses++ {
			go s.Admit(&closing{}).Judge(fmt.Errorf("auth: %w", ErrUnauthorized))
		}
		require.InDelta(t, 10*places/patience.Seconds(), guesses, places)
		began := time.Now()
		known := s.Admit(&closing{})
		require.LessOrEqual(t, time.Since(began), patience)
		known.Judge(nil)
		s.Close()
		synctest.Wait()
		require.Equal(t, guesses, s.Refused())
	})
}

// A place is free at once after a handshake that went well, or that failed for another reason.
func TestJudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStrangers("port", 1, time.Hour, ignore)
		defer s.Close()
		for _, tc := range []struct {
			err  error
			held time.Duration
		}{{nil, 0}, {ErrProtocol, 0}, {ErrJob, 0}, {ErrUnauthorized, refusedFor}} {
			c := &closing{}
			began := time.Now()
			s.Admit(c).Judge(tc.err)
			require.Equal(t, tc.held, time.Since(began), "%v", tc.err)
			require.Equal(t, tc.err == ErrUnauthorized, c.closed(), "%v", tc.err)
		}
	})
}

// The first refusal is told at once, the others once a minute, with their number and the last address.
func TestRefusalsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex // a line may be the timer's
		var told []string
		s := newStrangers("29700", 100, time.Hour, func(msg string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			require.Equal(t, "goccl: wrong secret refused", msg)
			told = append(told, fmt.Sprintf("%v%v", time.Since(began), args))
		})
		for _, wait := range []time.Duration{0, time.Second, time.Second, 3 * time.Minute, time.Second} {
			time.Sleep(wait)
			s.Admit(&closing{}).Judge(ErrUnauthorized)
		}
		s.Close()
		mu.Lock()
		defer mu.Unlock()
		const last = " last 10.0.0.7 port 29700]"
		require.Equal(t, []string{"0s[count 1" + last, "1m0s[count 2" + last, "3m5s[count 1" + last, "3m8s[count 1" + last}, told)
		require.Equal(t, 5, s.Refused())
	})
}

// What is logged of wrong secrets is a line of at most 120 columns, whatever the addresses, as slog and log write it.
func TestRefusalIsALine(t *testing.T) {
	tcp := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 65535} }
	for _, tc := range []struct {
		name       string
		port, from net.Addr
		want       string
	}{
		{"IPv4", tcp("100.100.100.100"), tcp("200.200.200.200"), "last=200.200.200.200 port=65535"},
		{"IPv6", tcp("2001:db8:1111:2222:3333:4444:5555:6666"), tcp("2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff"),
			"last=2001:db8:aaaa:bbbb:cccc:dddd:eeee:ffff port=65535"},
		{"a socket of this host", &net.UnixAddr{Net: "unix", Name: "@goccl-6b21026a0f7f36210a7c0d8550fbb0bb"}, &net.UnixAddr{Net: "unix", Name: "@"},
			`last="" port=@goccl-6b21026a0f7f36210a7c0d8550fbb0bb`},
		{"no address", tcp("127.0.0.1"), nil, `last="" port=65535`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			s := NewStrangers(tc.port)
			s.warn = slog.New(slog.NewTextHandler(&out, nil)).Warn
			s.refused.all, s.refused.untold = 99_998, 99_998
			host, _ := parts(tc.from)
			s.refuse(host)
			_, line, _ := strings.Cut(strings.TrimSpace(out.String()), "msg=")
			require.Equal(t, `"goccl: wrong secret refused" count=99999 `+tc.want, line)
			require.LessOrEqual(t, len("2006/01/02 15:04:05 WARN ")+len(line)-len(`""`), 120)
			s.Close()
		})
	}
}

// A port takes no more than a quarter of the descriptors that its process may have.
func TestStrangersCountDescriptors(t *testing.T) {
	require.Equal(t, min(256, max(descriptors()/4, 4)), NewStrangers(&net.TCPAddr{}).max)
	require.Equal(t, min(4096, max(descriptors()/4, 4)), NewStrangers(&net.UnixAddr{Net: "unix"}).max)
}

// Where few are let in at once, the next waits until one has left; one that is slow keeps nobody out.
func TestStrangersFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStrangers("port", 4, time.Hour, ignore)
		s.Few(2)
		began := time.Now()
		first := s.Admit(&closing{})
		s.Admit(&closing{})
		go func() {
			time.Sleep(briefly / 2)
			first.Leave()
		}()
		s.Admit(&closing{}) // as soon as the first has left
		require.Equal(t, briefly/2, time.Since(began))
		s.Admit(&closing{}) // the second is slow
		require.Equal(t, briefly, time.Since(began))
		require.Equal(t, 3, s.Len())
		s.Admit(&closing{}) // and still there
		require.Equal(t, briefly, time.Since(began))
		s.Few(9)
		require.Equal(t, s.max, s.few)
		s.Close()
	})
}
