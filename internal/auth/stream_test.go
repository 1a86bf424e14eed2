package auth

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// streams returns both ends of a connection after its handshake.
func streams(t testing.TB, secret string) (client, server *Stream) {
	cc, sc := net.Pipe()
	served := make(chan error, 1)
	go func() {
		var err error
		server, _, err = Server(sc, "j", secretOf([]byte(secret)), echo)
		served <- err
	}()
	client, _, err := Client(cc, "j", secretOf([]byte(secret)), nil)
	require.NoError(t, err)
	require.NoError(t, <-served)
	return client, server
}

// sends is what s sends of what is written, each in a record of its own.
func sends(t testing.TB, s *Stream, written ...string) (records []string) {
	conn := says()
	s.socket = conn
	for _, w := range written {
		_, err := s.Write([]byte(w))
		require.NoError(t, err)
		records = append(records, conn.sent.String())
		conn.sent.Reset()
	}
	return records
}

// receives is what s reads of what comes, and the error after that.
func receives(s *Stream, records ...string) (string, error) {
	s.socket = says(records...)
	var got strings.Builder
	_, err := io.Copy(&got, struct{ io.Reader }{s})
	if err == nil {
		err = io.EOF
	}
	return got.String(), err
}

// kinds are what a stream carries: frames, and data that travel in each way.
var kinds = []struct {
	name string
	wire Wire
}{{"frames", Plain}, {"auth", Auth}, {"encrypt", Encrypt}}

// of is a pair of streams that carries a kind of data.
func (w Wire) of(t testing.TB, secret string) (client, server *Stream) {
	client, server = streams(t, secret)
	if w != Plain {
		var err error
		_, client.out, client.in, err = client.Take(w)
		require.NoError(t, err)
		_, server.out, server.in, err = server.Take(w)
		require.NoError(t, err)
	}
	return client, server
}

// TestChangedOnTheWay changes what is sent in every way that somebody on the path has: no byte is believed that
// was not sent there, in that place.
func TestChangedOnTheWay(t *testing.T) {
	for _, k := range kinds {
		for _, tc := range []struct {
			name   string
			change func(sent, back, other []string) []string
			reads  string
			want   error
		}{
			{"nothing", func(s, _, _ []string) []string { return s }, "one, two, three", io.EOF},
			{"joined", func(s, _, _ []string) []string { return []string{strings.Join(s, "")} }, "one, two, three", io.EOF},
			{"in bytes", func(s, _, _ []string) []string { return strings.Split(strings.Join(s, ""), "") }, "one, two, three", io.EOF},
			{"dropped", func(s, _, _ []string) []string { return []string{s[0], s[2]} }, "one, ", ErrChanged},
			{"first dropped", func(s, _, _ []string) []string { return s[1:] }, "", ErrChanged},
			{"replayed", func(s, _, _ []string) []string { return []string{s[0], s[1], s[1], s[2]} }, "one, two, ", ErrChanged},
			{"replayed later", func(s, _, _ []string) []string { return append(s, s[0]) }, "one, two, three", ErrChanged},
			{"reordered", func(s, _, _ []string) []string { return []string{s[0], s[2], s[1]} }, "one, ", ErrChanged},
			{"reflected", func(s, b, _ []string) []string { return []string{s[0], b[1], s[2]} }, "one, ", ErrChanged},
			{"of another connection", func(s, _, o []string) []string { return []string{s[0], o[1], s[2]} }, "one, ", ErrChanged},
			{"inserted", func(s, _, _ []string) []string { return []string{s[0], "\x04\x00\x01\x06", s[1]} }, "one, ", ErrChanged},
			{"empty record", func(s, _, _ []string) []string { return []string{s[0], "\x00\x00\x00\x10" + strings.Repeat("x", 16)} }, "one, ", ErrChanged},
			{"cut between", func(s, _, _ []string) []string { return s[:2] }, "one, two, ", io.EOF}, // see TestCut
			{"cut within", func(s, _, _ []string) []string { return []string{s[0], s[1][:len(s[1])-1]} }, "one, ", io.ErrUnexpectedEOF},
			{"cut in a length", func(s, _, _ []string) []string { return []string{s[0], s[1][:3]} }, "one, ", io.ErrUnexpectedEOF},
			{"part of two", func(s, _, _ []string) []string {
				return []string{s[0], s[1][:len(s[1])-tagLen], s[2][len(s[2])-tagLen:]}
			}, "one, ", ErrChanged},
		} {
			t.Run(k.name+"/"+tc.name, func(t *testing.T) {
				client, server := k.wire.of(t, "s")
				another, _ := k.wire.of(t, "s")
				said := []string{"one, ", "two, ", "three"}
				back, other := sends(t, server, said...), sends(t, another, said...)
				got, err := receives(server, tc.change(sends(t, client, said...), back, other)...)
				require.ErrorIs(t, err, tc.want)
				require.Equal(t, tc.reads, got)
			})
		}
	}
}

// TestEveryBitIsProtected flips each bit of a record in turn: nothing of it is read, and nothing after it. Where its length has
// become larger the end comes first.
func TestEveryBitIsProtected(t *testing.T) {
	for _, k := range kinds {
		client, server := k.wire.of(t, "s")
		sent := sends(t, client, "one, ", "two, ", "three")
		in := *server.in
		for bit := range 8 * len(sent[1]) {
			flipped := []byte(sent[1])
			flipped[bit/8] ^= 1 << (bit % 8)
			again := in
			server.in, server.broken, server.record = &again, nil, nil
			got, err := receives(server, sent[0], string(flipped), sent[2])
			require.Equal(t, "one, ", got, "%s bit %d", k.name, bit)
			if err != io.ErrUnexpectedEOF || bit/8 >= RecordHead {
				require.ErrorIs(t, err, ErrChanged, "%s bit %d", k.name, bit)
			}
			_, err = server.Read(make([]byte, 1))
			require.Error(t, err, "nothing more is read")
		}
	}
}

// Without the secret, a stream is the connection itself; data need one to be protected.
func TestNoSecret(t *testing.T) {
	client, server := streams(t, "")
	sent := sends(t, client, "one, ", "two")
	require.Equal(t, []string{"one, ", "two"}, sent)
	got, err := receives(server, sent...)
	require.Equal(t, "one, two", got)
	require.Equal(t, io.EOF, err)
	for _, w := range []Wire{Auth, Encrypt} {
		_, _, _, err = client.Take(w)
		require.ErrorIs(t, err, ErrNoSecret)
	}
	conn, out, in, err := client.Take(Plain)
	require.NoError(t, err)
	require.NotNil(t, conn)
	require.Nil(t, out)
	require.Nil(t, in)
}

// What differs, in the secret, the handshake, the direction or the use, has other keys.
func TestKeysDiffer(t *testing.T) {
	keys := map[string]bool{}
	n := 0
	for _, secret := range []string{"s", "t", "s"} {
		for _, k := range kinds {
			client, server := k.wire.of(t, secret)
			require.Equal(t, client.out.key, server.in.key)
			require.Equal(t, client.in.key, server.out.key)
			keys[string(client.out.key)], keys[string(client.in.key)] = true, true
			n += 2
		}
	}
	require.Len(t, keys, n)
}

// A stream that is taken for data must have no bytes of its own left, which would be lost.
func TestTakeWithBytesUnderWay(t *testing.T) {
	client, server := streams(t, "s")
	server.socket = says(sends(t, client, "two")...)
	_, err := server.Read(make([]byte, 1))
	require.NoError(t, err)
	_, _, _, err = server.Take(Auth)
	require.EqualError(t, err, "auth: a stream with bytes under way")
}

// A deadline within a record loses no byte of it.
func TestReadGoesOnAfterADeadline(t *testing.T) {
	client, server := streams(t, "s")
	record := sends(t, client, "hello")[0]
	here, there := net.Pipe()
	server.socket = here
	for i := range len(record) {
		server.SetReadDeadline(time.Now().Add(-time.Second))
		_, err := server.Read(make([]byte, 5))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		server.SetReadDeadline(time.Time{})
		go there.Write([]byte(record[i : i+1]))
		if i < len(record)-1 {
			server.SetReadDeadline(time.Now().Add(time.Millisecond))
			_, err = server.Read(make([]byte, 5))
			require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		}
	}
	b := make([]byte, 5)
	_, err := server.Read(b)
	require.NoError(t, err)
	require.Equal(t, "hello", string(b))
}

// narrow is a connection that takes so many bytes before its deadline.
type narrow struct {
	*script
	takes int
}

func (c *narrow) Write(b []byte) (int, error) {
	n := min(len(b), c.takes)
	c.takes -= n
	c.sent.Write(b[:n])
	if n < len(b) {
		return n, os.ErrDeadlineExceeded
	}
	return n, nil
}

// What a deadline cuts off is kept whole, goes before what comes next, and costs no memory once it is sent.
func TestWriteKeepsWhatIsLate(t *testing.T) {
	for _, secret := range []string{"", "s"} {
		client, server := streams(t, secret)
		conn := &narrow{script: says(), takes: 100}
		client.socket = conn
		large := strings.Repeat("x", 3*MaxRecord+5)
		n, err := client.Write([]byte(large))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		require.Equal(t, len(large), n)
		require.GreaterOrEqual(t, client.Unsent(), len(large)-100)
		_, err = client.Write([]byte("more"))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded)
		conn.takes = 1 << 20
		_, err = client.Write(nil)
		require.NoError(t, err)
		require.Zero(t, client.Unsent())
		require.LessOrEqual(t, cap(client.unsent), keptRoom)
		got, err := receives(server, conn.sent.String())
		require.Equal(t, io.EOF, err)
		require.True(t, got == large+"more")
	}
}

// After an error that is no deadline nothing is kept.
func TestWriteFails(t *testing.T) {
	client, _ := streams(t, "s")
	client.socket.Close()
	_, err := client.Write(make([]byte, 3*MaxRecord))
	require.True(t, errors.Is(err, io.ErrClosedPipe), "%v", err)
	require.Zero(t, client.Unsent())
}

// A small write and its read allocate nothing once they have been done before.
func TestStreamAllocs(t *testing.T) {
	client, server := streams(t, "s")
	conn := says()
	client.socket, server.socket = conn, conn
	b := make([]byte, 100)
	conn.sent.Grow(1 << 20)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		conn.sent.Reset()
		client.Write(b)
		conn.said.Reset(conn.sent.Bytes())
		if _, err := io.ReadFull(server, b); err != nil {
			panic(err)
		}
	}))
}

func TestParseWire(t *testing.T) {
	for _, w := range []Wire{Plain, Auth, Encrypt} {
		got, err := ParseWire(w.String())
		require.NoError(t, err)
		require.Equal(t, w, got)
	}
	_, err := ParseWire("tls")
	require.EqualError(t, err, `"tls"; it is plain, auth or encrypt`)
}

// FuzzStream reads what somebody on the path has made of three records: what opens is what was sent, from the beginning.
func FuzzStream(f *testing.F) {
	client, server := streams(f, "s")
	said := []string{"one, ", "two, ", "three"}
	sent := strings.Join(sends(f, client, said...), "")
	in := *server.in
	f.Add([]byte(sent))
	f.Add([]byte(sent[:40]))
	f.Add([]byte(sent[25:]))
	f.Add([]byte(sent[:25] + sent))
	f.Add([]byte{0, 1, 0, 16})
	f.Fuzz(func(t *testing.T, comes []byte) {
		again := in
		s := &Stream{in: &again}
		got, err := receives(s, string(comes))
		require.Error(t, err)
		require.Contains(t, []string{"", "one, ", "one, two, ", "one, two, three"}, got, "whole records, in order")
		require.LessOrEqual(t, cap(s.record), 2*(MaxRecord+RecordOver))
		if bytes.HasPrefix(comes, []byte(sent)) {
			require.Equal(t, "one, two, three", got)
		}
	})
}

// FuzzOpen opens anything that is as long as a record.
func FuzzOpen(f *testing.F) {
	for _, hide := range []bool{false, true} {
		out, _ := directed(f, hide)
		f.Add(out.Seal(nil, []byte("hello"), nil)[RecordHead:], hide)
	}
	f.Fuzz(func(t *testing.T, body []byte, hide bool) {
		d, err := newDirection([]byte("another"), "one way", hide)
		if err != nil || len(body) <= tagLen || len(body) > MaxRecord+tagLen {
			return
		}
		record := append([]byte{0, byte(len(body) >> 16), byte(len(body) >> 8), byte(len(body))}, body...)
		n, err := RecordLen(record)
		require.NoError(t, err)
		require.Equal(t, len(record), n)
		plain, err := d.Open(record)
		require.Error(t, err)
		require.Nil(t, plain)
	})
}

// BenchmarkHandshake is the time from a connection to its two streams.
func BenchmarkHandshake(b *testing.B) {
	for _, secret := range []string{"", "a secret of the job"} {
		b.Run(map[bool]string{true: "secret", false: "none"}[secret != ""], func(b *testing.B) {
			for b.Loop() {
				streams(b, secret)
			}
		})
	}
}

// BenchmarkFrame is the time to send and to read an event of the control plane.
func BenchmarkFrame(b *testing.B) {
	for _, secret := range []string{"", "a secret of the job"} {
		b.Run(map[bool]string{true: "secret", false: "none"}[secret != ""], func(b *testing.B) {
			client, server := streams(b, secret)
			conn, frame := says(), make([]byte, 282)
			client.socket, server.socket = conn, conn
			for b.Loop() {
				conn.sent.Reset()
				client.Write(frame)
				conn.said.Reset(conn.sent.Bytes())
				if _, err := io.ReadFull(server, frame); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A large record does not cost its memory for good: a Comm of many hosts has a Stream to several, and large pictures come rarely.
func TestStreamKeepsLittle(t *testing.T) {
	client, server := streams(t, "a secret of many letters")
	for _, n := range []int{100, MaxRecord, 20} {
		go client.Write(make([]byte, n))
		for got := 0; got < n; {
			m, err := server.Read(make([]byte, 1000))
			require.NoError(t, err)
			got += m
		}
		require.LessOrEqual(t, cap(server.record)+cap(server.plain), 2*keptRoom, n)
	}
}

// throughRelay is a connection that passes one.
type throughRelay struct{ net.Conn }

func (throughRelay) Relayed() {}

// A relay, which has no secret, dials the listener itself, and passes what the two ends say on to each other: the
// listener would send data plain. Both ends know of the relay, or there is no stream.
func TestRelayedAtBothEnds(t *testing.T) {
	secret := secretOf([]byte("the secret of the job"))
	for _, tc := range []struct{ client, server bool }{{false, false}, {false, true}, {true, false}, {true, true}} {
		cc, sc := net.Pipe()
		as := func(conn net.Conn, relayed bool) net.Conn {
			if relayed {
				return throughRelay{conn}
			}
			return conn
		}
		var server *Stream
		served := make(chan error, 1)
		go func() {
			var err error
			server, _, err = Server(as(sc, tc.server), "j", secret, echo)
			served <- err
		}()
		client, _, err := Client(as(cc, tc.client), "j", secret, nil)
		serr := <-served
		if tc.client != tc.server {
			require.ErrorIs(t, err, ErrJob)
			require.ErrorIs(t, serr, ErrJob)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, serr)
		for _, s := range []*Stream{client, server} {
			_, out, in, err := s.Take(Plain)
			require.NoError(t, err)
			require.Equal(t, tc.client, out != nil)
			require.Equal(t, tc.client, in != nil)
		}
	}
}
