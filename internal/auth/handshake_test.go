package auth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// outcome is what one handshake gave both ends.
type outcome struct {
	hello, reply []byte
	client       error
	server       error
}

// end is one side's view of the job.
type end struct {
	job    string
	secret []byte
}

func echo(hello []byte) ([]byte, error) { return append([]byte("re: "), hello...), nil }

// shake runs both ends over a pipe and then checks that the stream after the
// handshake belongs to the caller, to the byte.
func shake(t *testing.T, c, s end, hello []byte, accept func([]byte) ([]byte, error)) outcome {
	t.Helper()
	cc, sc := net.Pipe()
	deadline := time.Now().Add(10 * time.Second)
	require.NoError(t, cc.SetDeadline(deadline))
	require.NoError(t, sc.SetDeadline(deadline))
	var o outcome
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer sc.Close()
		var st *Stream
		st, o.hello, o.server = Server(sc, s.job, secretOf(s.secret), accept)
		if (o.server == nil) != (st != nil) {
			t.Errorf("a stream %v with error %v", st, o.server)
		}
		if o.server == nil {
			io.Copy(st, io.LimitReader(st, 5))
		}
	}()
	var st *Stream
	st, o.reply, o.client = Client(cc, c.job, secretOf(c.secret), hello)
	require.Equal(t, o.client == nil, st != nil)
	if o.client == nil {
		_, err := st.Write([]byte("after"))
		require.NoError(t, err)
		rest, err := io.ReadAll(st)
		require.NoError(t, err)
		require.Equal(t, "after", string(rest))
	}
	cc.Close()
	<-done
	return o
}

func TestHandshake(t *testing.T) {
	long := strings.Repeat("x", MaxHello)
	denied := func([]byte) ([]byte, error) { return nil, errors.New("rank 3 is here already") }
	for _, tc := range []struct {
		name           string
		client, server end
		hello          string
		accept         func([]byte) ([]byte, error)
		reply          string
		clientErr      error // nil: any error will do where text is set
		clientText     string
		serverErr      error
		serverText     string
	}{
		{name: "same secret", client: end{"j", []byte("s")}, server: end{"j", []byte("s")}, hello: "rank 1", accept: echo, reply: "re: rank 1"},
		{name: "empty hello and reply", client: end{"j", []byte("s")}, server: end{"j", []byte("s")}, accept: func(b []byte) ([]byte, error) { return b, nil }},
		{name: "longest", client: end{"", []byte("s")}, server: end{"", []byte("s")}, hello: long, accept: func(b []byte) ([]byte, error) { return b, nil }, reply: long},
		{name: "no secret", client: end{"j", nil}, server: end{"j", []byte{}}, hello: "h", accept: echo, reply: "re: h"},
		{name: "wrong secret", client: end{"j", []byte("s")}, server: end{"j", []byte("t")}, accept: echo,
			clientErr: ErrUnauthorized, serverErr: ErrUnauthorized,
			clientText: "auth: the job's secret differs; give all ranks the same GOCCL_SECRET or GOCCL_SECRET_FILE"},
		{name: "client without", client: end{"j", nil}, server: end{"j", []byte("t")}, accept: echo,
			clientErr: ErrUnauthorized, clientText: "the peer has one, this process has none",
			serverErr: ErrUnauthorized, serverText: "the peer has none"},
		{name: "server without", client: end{"j", []byte("s")}, server: end{"j", nil}, accept: echo,
			clientErr: ErrUnauthorized, clientText: "the peer has none",
			serverErr: ErrUnauthorized, serverText: "the peer has one, this process has none"},
		{name: "another job", client: end{"j", []byte("s")}, server: end{"k", []byte("s")}, accept: echo,
			clientErr: ErrJob, serverErr: ErrJob},
		{name: "another job and secret", client: end{"j", []byte("s")}, server: end{"k", []byte("t")}, accept: echo,
			clientErr: ErrJob, serverErr: ErrJob},
		{name: "refused", client: end{"j", nil}, server: end{"j", nil}, accept: denied,
			clientErr: &Refused{"rank 3 is here already"}, clientText: "refused by the peer: rank 3 is here already",
			serverText: "rank 3 is here already"},
		{name: "long refusal", client: end{"j", nil}, server: end{"j", nil},
			accept:    func([]byte) ([]byte, error) { return nil, errors.New(long + "y") },
			clientErr: &Refused{long}, serverText: long + "y"},
		{name: "long reply", client: end{"j", nil}, server: end{"j", nil},
			accept:    func([]byte) ([]byte, error) { return make([]byte, MaxHello+1), nil },
			clientErr: &Refused{"auth: a reply of 4097 bytes; at most 4096 fit"}, serverText: "a reply of 4097 bytes"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := shake(t, tc.client, tc.server, []byte(tc.hello), tc.accept)
			if want, is := tc.clientErr.(*Refused); is {
				var r *Refused
				require.ErrorAs(t, o.client, &r)
				require.Equal(t, want, r)
				require.ErrorContains(t, o.client, tc.clientText)
				require.ErrorContains(t, o.server, tc.serverText)
				return
			}
			require.ErrorIs(t, o.client, tc.clientErr)
			require.ErrorIs(t, o.server, tc.serverErr)
			if tc.clientErr != nil {
				require.ErrorContains(t, o.client, tc.clientText)
				require.ErrorContains(t, o.server, tc.serverText)
				require.Nil(t, o.hello)
				return
			}
			require.Equal(t, tc.hello, string(o.hello))
			require.Equal(t, tc.reply, string(o.reply))
		})
	}
}

func TestClientHelloTooLong(t *testing.T) {
	_, _, err := Client(nil, "j", secretOf(nil), make([]byte, MaxHello+1))
	require.EqualError(t, err, "auth: a hello of 4097 bytes; at most 4096 fit")
}

// tamper flips one bit of the n-th byte that passes through Write.
type tamper struct {
	net.Conn
	at int
}

func (c *tamper) Write(b []byte) (int, error) {
	if 0 <= c.at && c.at < len(b) {
		b = bytes.Clone(b)
		b[c.at] ^= 0x10
	}
	c.at -= len(b)
	return c.Conn.Write(b)
}

// loopback returns both ends of a TCP connection. A pipe has no buffer: a server
// that answers before it has read all would wait for its client, and that for it.
func loopback(t *testing.T, l net.Listener) (dialed, accepted net.Conn) {
	dialed, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	accepted, err = l.Accept()
	require.NoError(t, err)
	return dialed, accepted
}

// TestEveryByteIsProtected changes each byte that either end sends, in turn:
// never may both ends be content, nor one of them with a wrong hello or reply.
func TestEveryByteIsProtected(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	secret, hello := []byte("s"), []byte("hello")
	for _, tc := range []struct {
		side  string
		bytes int
	}{
		{"client", greetingLen + proofLen + len(hello)},
		{"server", answerLen + nonceLen + openingLen + replyLen + len("re: hello")},
	} {
		for at := range tc.bytes {
			cc, sc := loopback(t, l)
			var c, s net.Conn = cc, sc
			if tc.side == "client" {
				c = &tamper{cc, at}
			} else {
				s = &tamper{sc, at}
			}
			served := make(chan error, 1)
			go func() {
				_, got, err := Server(s, "j", secretOf(secret), echo)
				if err == nil && string(got) != "hello" {
					t.Errorf("%s byte %d: the server believed %q", tc.side, at, got)
				}
				sc.Close()
				served <- err
			}()
			cc.SetDeadline(time.Now().Add(10 * time.Second))
			_, reply, err := Client(c, "j", secretOf(secret), hello)
			cc.Close()
			require.Falsef(t, <-served == nil && err == nil, "%s byte %d was changed, and nobody saw it", tc.side, at)
			if err == nil {
				require.Equal(t, "re: hello", string(reply))
			}
		}
	}
}

// script is a connection whose other end has said its part already.
type script struct {
	net.Conn
	said *bytes.Reader
	sent bytes.Buffer
}

func (c *script) Read(b []byte) (int, error)  { return c.said.Read(b) }
func (c *script) Write(b []byte) (int, error) { return c.sent.Write(b) }

func says(b ...string) *script {
	return &script{said: bytes.NewReader([]byte(strings.Join(b, "")))}
}

func TestStrangers(t *testing.T) {
	later := string(binary.BigEndian.AppendUint16([]byte(magic), 7))
	for _, tc := range []struct {
		name           string
		said           string
		read           int // bytes taken of it
		client, server error
	}{
		{"nothing", "", 0, io.EOF, io.EOF},
		{"half a magic", magic[:4], 4, io.ErrUnexpectedEOF, io.ErrUnexpectedEOF},
		{"web browser", "GET / HTTP/1.1\r\nHost: a\r\n", len(magic), ErrProtocol, ErrProtocol},
		{"ssh", "SSH-2.0-OpenSSH_9.2p1\r\n", len(magic), ErrProtocol, ErrProtocol},
		{"zeros", strings.Repeat("\x00", 5000), len(magic), ErrProtocol, ErrProtocol},
		{"later version", later + strings.Repeat("\x00", 5000), -1, ErrVersion, ErrVersion},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := says(tc.said)
			_, _, err := Client(c, "j", secretOf(nil), nil)
			require.ErrorIs(t, err, tc.client)
			s := says(tc.said)
			_, _, err = Server(s, "j", secretOf(nil), echo)
			require.ErrorIs(t, err, tc.server)
			if tc.read >= 0 {
				require.Equal(t, tc.read, len(tc.said)-c.said.Len())
				require.Equal(t, tc.read, len(tc.said)-s.said.Len())
			}
		})
	}
}

func TestVersionReachesBothEnds(t *testing.T) {
	greeting := greet("j", nil)
	greeting[len(magic)+1] = version + 1
	s := says(string(greeting))
	_, _, err := Server(s, "j", secretOf(nil), echo)
	require.EqualError(t, err, "auth: a different version of goccl's protocol: version 3 here, 4 there; run one build of the program on all ranks")

	s.sent.Bytes()[len(magic)+1] = version + 1 // as a server of the next version would answer
	_, _, err = Client(says(s.sent.String()), "j", secretOf(nil), nil)
	require.ErrorIs(t, err, ErrVersion)
}

// TestServerReadsLittleOfStrangers is the promise that at most 4 KiB are read
// before the peer is known: here 127 bytes, whatever length is announced.
func TestServerReadsLittleOfStrangers(t *testing.T) {
	proof := make([]byte, 100_000)
	proof[1], proof[2] = 0xff, 0xff
	s := says(string(greet("j", nil)), string(proof))
	size := s.said.Len()
	_, _, err := Server(s, "j", secretOf([]byte("secret")), echo)
	require.ErrorIs(t, err, ErrUnauthorized)
	require.Equal(t, greetingLen+proofLen, size-s.said.Len())
}

// TestAuthenticatedLengthIsBounded: even who knows the secret cannot announce
// more than MaxHello bytes.
func TestAuthenticatedLengthIsBounded(t *testing.T) {
	cc, sc := net.Pipe()
	defer cc.Close()
	served := make(chan error, 1)
	go func() {
		_, _, err := Server(sc, "j", secretOf(nil), echo)
		sc.Close()
		served <- err
	}()
	greeting := greet("j", nil)
	_, err := cc.Write(greeting)
	require.NoError(t, err)
	answer := make([]byte, answerLen+nonceLen)
	_, err = io.ReadFull(cc, answer)
	require.NoError(t, err)
	proof := make([]byte, proofLen)
	binary.BigEndian.PutUint16(proof[1:], MaxHello+1)
	said := append(greeting, answer[:answerLen+nonceLen]...)
	copy(proof[proofLen-macLen:], mac(nil, "client", said, proof[:proofLen-macLen]))
	_, err = cc.Write(proof)
	require.NoError(t, err)
	require.ErrorIs(t, <-served, ErrProtocol)
}

// TestServerGivesNothingAway: who does not know the secret gets nothing that depends on it, by which secrets could be
// tried without asking.
func TestServerGivesNothingAway(t *testing.T) {
	proof := make([]byte, proofLen)
	proof[2] = 5
	answers := map[string]bool{}
	for _, secret := range []string{"weak", "strong"} {
		s := says(string(greet("j", []byte("guess"))), string(proof))
		_, _, err := Server(s, "j", secretOf([]byte(secret)), echo)
		require.ErrorIs(t, err, ErrUnauthorized)
		said := s.sent.Bytes()
		require.Len(t, said, answerLen+nonceLen+openingLen)
		clear(said[answerLen : answerLen+nonceLen]) // which is random
		answers[string(said)] = true
	}
	require.Len(t, answers, 1)
}

// TestClientAsksForProof: a server that does not know the secret is not believed, whatever it says.
func TestClientAsksForProof(t *testing.T) {
	answer := greet("j", []byte("s"))[:len(magic)+2]
	answer = append(answer, ok, hasSecret)
	answer = append(answer, make([]byte, nonceLen)...)
	_, _, err := Client(says(string(answer), string(make([]byte, openingLen+replyLen))), "j", secretOf([]byte("s")), []byte("hello"))
	require.ErrorIs(t, err, ErrUnauthorized)
}

func TestNoncesDiffer(t *testing.T) {
	require.NotEqual(t, greet("j", nil), greet("j", nil))
}

// recorded is what each end sent in one good handshake.
func recorded(f *testing.F) (client, server []byte) {
	cc, sc := net.Pipe()
	c, s := &recorder{Conn: cc}, &recorder{Conn: sc}
	done := make(chan error, 1)
	go func() {
		_, _, err := Server(s, "j", secretOf([]byte("s")), echo)
		done <- err
	}()
	_, _, err := Client(c, "j", secretOf([]byte("s")), []byte("hello"))
	require.NoError(f, err)
	require.NoError(f, <-done)
	return c.sent.Bytes(), s.sent.Bytes()
}

type recorder struct {
	net.Conn
	sent bytes.Buffer
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent.Write(b)
	return r.Conn.Write(b)
}

func FuzzServer(f *testing.F) {
	client, server := recorded(f)
	f.Add(client)
	f.Add(client[:greetingLen])
	f.Add(server)
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		s := says(string(said))
		// Fresh nonces: nothing made up or replayed can be believed.
		_, hello, err := Server(s, "j", secretOf([]byte("s")), echo)
		require.Error(t, err)
		require.Nil(t, hello)
		require.LessOrEqual(t, len(said)-s.said.Len(), greetingLen+proofLen, "what the server reads of a stranger")
	})
}

func FuzzClient(f *testing.F) {
	client, server := recorded(f)
	f.Add(server)
	f.Add(server[:answerLen])
	f.Add(client)
	f.Add([]byte("SSH-2.0-x\r\n"))
	f.Fuzz(func(t *testing.T, said []byte) {
		c := says(string(said))
		_, reply, err := Client(c, "j", secretOf([]byte("s")), []byte("hello"))
		require.Error(t, err)
		require.Nil(t, reply)
		require.NotContains(t, c.sent.String(), "hello", "the client tells a stranger nothing")
	})
}
