package boot

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// A hall that ends while somebody waits there is an error at once, and so is one that is gone.
func TestHallEnds(t *testing.T) {
	h := hallFor(t, hallSecret)
	s, err := DialHall(h.Addr(), hallSecret)
	require.NoError(t, err)
	require.NoError(t, s.Set(t.Context(), "x", nil))
	ended := make(chan error)
	for range 2 {
		go func() {
			_, err := s.Get(t.Context(), "never")
			ended <- err
		}()
	}
	require.Eventually(t, func() bool {
		h.memoryStore.mu.Lock()
		defer h.memoryStore.mu.Unlock()
		return h.waiting["never"] != nil
	}, hallLong, time.Millisecond)
	require.NoError(t, h.Close())
	require.NoError(t, h.Close())
	for range 2 {
		require.ErrorIs(t, <-ended, Lost)
	}
	require.ErrorIs(t, s.Set(t.Context(), "x", nil), Lost)
	s, err = DialHall(h.Addr(), hallSecret)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, s.Set(ctx, "x", nil), Timeout, "one that may be about to begin is looked for, for a while")
}

// A client that goes while its request waits is forgotten, with its connection.
func TestHallForgetsClients(t *testing.T) {
	h := hallFor(t, nil)
	s, err := DialHall(h.Addr(), nil)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := s.Get(ctx, "never")
		ended <- err
	}()
	conns := func() int {
		h.acceptor.mu.Lock()
		defer h.acceptor.mu.Unlock()
		return len(h.conns)
	}
	require.Eventually(t, func() bool { return conns() == 1 }, hallLong, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-ended, Canceled)
	require.Eventually(t, func() bool { return conns() == 0 }, hallLong, time.Millisecond)
}

// A key that a client leaves for its end is set where its connection breaks, at once, and not where it has said that all
// is well, nor where the hall ends.
func TestHallSetsWhenLost(t *testing.T) {
	h := hallFor(t, hallSecret)
	s, err := DialHall(h.Addr(), hallSecret)
	require.NoError(t, err)
	c := s.(*hallClient)
	ends := map[string]func(lost bool){}
	for _, key := range []string{"lost", "well", "ends"} {
		ends[key], err = c.SetWhenLost(t.Context(), key)
		require.NoError(t, err)
	}
	conns := func(want int) {
		t.Helper()
		require.Eventually(t, func() bool {
			h.acceptor.mu.Lock()
			defer h.acceptor.mu.Unlock()
			return len(h.conns) == want
		}, hallLong, time.Millisecond)
	}
	conns(3)
	require.False(t, h.has("lost"))
	ends["lost"](true)
	_, err = h.Get(t.Context(), "lost")
	require.NoError(t, err)
	ends["well"](false)
	n, err := s.Add(t.Context(), "n", 1) // on that connection
	require.NoError(t, err)
	require.EqualValues(t, 1, n)
	conns(2)
	c.unused().Close()
	conns(1)
	require.NoError(t, h.Close())
	require.False(t, h.has("well"))
	require.False(t, h.has("ends"))
	ends["ends"](false) // to nobody
	_, err = c.SetWhenLost(t.Context(), "")
	require.ErrorIs(t, err, Argument)
	_, err = c.SetWhenLost(t.Context(), "late")
	require.ErrorIs(t, err, Lost)
}

// A client that asks one thing after the other uses one connection.
func TestHallKeepsConnections(t *testing.T) {
	h := hallFor(t, hallSecret)
	s, err := DialHall(h.Addr(), hallSecret)
	require.NoError(t, err)
	for range 20 {
		_, err := s.Add(t.Context(), "n", 1)
		require.NoError(t, err)
	}
	h.acceptor.mu.Lock()
	defer h.acceptor.mu.Unlock()
	require.LessOrEqual(t, len(h.conns), 3, "more only where this process stood still")
}

// What stands at the hall's address and is none, or breaks off or lies, is an error that says where, before the context ends.
func TestNotAHall(t *testing.T) {
	for name, serve := range map[string]func(conn net.Conn){
		"hangs up": func(net.Conn) {},
		"a web server": func(conn net.Conn) {
			io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\nthis is some text that is long enough to be read as an answer of a hall\r\n")
		},
		"hangs up after the handshake": func(conn net.Conn) { auth.Server(conn, hallJob, noSecret, anyone) },
		"breaks off in the answer": func(conn net.Conn) {
			if s, _, err := auth.Server(conn, hallJob, noSecret, anyone); err == nil {
				readRequest(s)
				s.Write(reply{value: []byte("value")}.append(nil)[:replyHead+2])
			}
		},
		"says that it sends 4 GiB": func(conn net.Conn) {
			if s, _, err := auth.Server(conn, hallJob, noSecret, anyone); err == nil {
				readRequest(s)
				s.Write(append(make([]byte, 9), 0xff, 0xff, 0xff, 0xff))
			}
		},
		"has a code that is none": func(conn net.Conn) {
			if s, _, err := auth.Server(conn, hallJob, noSecret, anyone); err == nil {
				readRequest(s)
				s.Write(append([]byte{200}, make([]byte, 12)...))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			answering(t, l, serve)
			s, err := DialHall(l.Addr().String(), nil)
			require.NoError(t, err)
			s.(*hallClient).patience = 20 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), hallLong)
			defer cancel()
			_, err = s.Get(ctx, "x")
			require.Error(t, err)
			require.ErrorContains(t, err, l.Addr().String())
			require.NoError(t, ctx.Err())
			e := asError(err)
			assert.Contains(t, []Code{Lost, System}, e.Code, "%v", err)
		})
	}
}

func anyone([]byte) ([]byte, error) { return nil, nil }

// A hall drops a connection that sends what is no request.
func TestHallDropsGarbage(t *testing.T) {
	h := hallFor(t, nil)
	for _, text := range [][]byte{
		bytes.Repeat([]byte{0xff}, requestHead),
		request{what: askGet, key: ""}.append(nil),
		request{what: askWill + 1, key: "x"}.append(nil),
		request{what: askGet, key: string(make([]byte, MaxKey+1))}.append(nil),
	} {
		conn, err := net.Dial("tcp", h.Addr())
		require.NoError(t, err)
		defer conn.Close()
		s, _, err := auth.Client(conn, hallJob, noSecret, nil)
		require.NoError(t, err)
		_, err = s.Write(text)
		require.NoError(t, err)
		conn.SetReadDeadline(time.Now().Add(hallLong))
		_, err = s.Read(make([]byte, 1))
		require.True(t, isEnding(err), "%v", err)
	}
	require.Empty(t, h.values)
}

// A hall takes no more than it has room for.
func TestHallIsFull(t *testing.T) {
	h := hallFor(t, nil)
	value := make([]byte, MaxStored)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = h.Set(t.Context(), string(rune('a'+i)), value)
	}
	require.ErrorIs(t, err, System)
	require.ErrorContains(t, err, "the hall is full")
	require.NoError(t, h.Set(t.Context(), "a", nil), "in the place of a larger one")
	require.NoError(t, h.Set(t.Context(), "zz", value[:MaxStored/2]))
}

func FuzzReadRequest(f *testing.F) {
	f.Add(request{what: askSet, n: -1, key: "key", value: []byte("value")}.append(nil))
	f.Add(request{what: askAdd, n: 1, key: "key"}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		q, err := readRequest(bytes.NewReader(b))
		if err == nil {
			again := q.append(nil)
			require.Equal(t, b[:len(again)], again)
		}
	})
}

func FuzzReadReply(f *testing.F) {
	f.Add(reply{code: Lost, n: 7, value: []byte("why")}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := readReply(bytes.NewReader(b))
		if err == nil {
			again := r.append(nil)
			require.Equal(t, b[:len(again)], again)
		}
	})
}
