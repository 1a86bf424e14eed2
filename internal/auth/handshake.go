// Package auth is the job's secret and the handshake that proves it.
//
// Every connection between the processes of a job starts with it, so that a
// stranger, another job on a colliding port or another release of goccl is
// turned away with a reason before a byte of it is believed:
//
//	client  greeting   magic 8, version 2, flags 2, nonce 32, job 16
//	server  answer     magic 8, version 2, status 1, flags 1; if all is well: nonce 32
//	client  proof      status 1, length 2, sha256(hello) 32, mac 32
//	server  opening    status 1, mac 32
//	client  hello
//	server  reply      status 1, length 2, mac 32; then the reply, or why the hello was refused
//
// Numbers are big-endian; job is the start of sha256(job). A mac is HMAC-SHA256
// with the secret over a name of its role and all that was said before, both
// nonces included: nothing can be replayed, reflected, or moved to another job.
// The server reads 127 bytes of a stranger, no more: the proof carries the
// hello's hash, so the hello itself is read only once its sender is known, and sent only once the server is.
//
// The client proves the secret first. Whoever dials a job's port so learns nothing by which to try
// secrets at home: a short one can be guessed only in as many handshakes, or by who stands where
// the server should.
//
// What follows the handshake is bound to it: both ends get a [Stream], the only thing to read from
// and write to. Where the job has a secret, all that the Stream carries is authenticated and
// encrypted with keys of this one connection, one for each direction: HKDF-SHA256 of the secret and
// of all that was said. Who has passed a handshake on can so change nothing after it.
package auth

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/goccl/goccl/internal/plain"
)

// MaxHello is the most bytes that a hello, a reply or a refusal may have.
const MaxHello = 4 << 10

// Errors of a handshake, for errors.Is. Any other error is the connection's own.
var (
	// ErrUnauthorized: the two ends do not hold the same secret.
	ErrUnauthorized = errors.New("the job's secret differs")
	// ErrProtocol: the other end does not speak goccl's protocol at all.
	ErrProtocol = errors.New("not a goccl peer")
	// ErrVersion: the other end is goccl with another version of the protocol.
	ErrVersion = errors.New("a different version of goccl's protocol")
	// ErrJob: the other end belongs to another job, as where two jobs chose one port.
	ErrJob = errors.New("a goccl peer of another job")
)

// Refused is the error of a server's accept function, as its client gets it.
type Refused struct{ Text string }

func (r *Refused) Error() string { return "refused by the peer: " + plain.Text(r.Text) }

// The greeting, and the answer up to its flags, keep their layout in every
// version: two versions that differ can always say so.
const (
	magic   = "goccl\r\n\x1a" // no text protocol starts so, and a text-mode relay spoils it
	version = 3

	nonceLen    = 32
	macLen      = sha256.Size
	jobLen      = 16
	greetingLen = len(magic) + 2 + 2 + nonceLen + jobLen
	statusAt    = len(magic) + 2
	answerLen   = statusAt + 1 + 1
	openingLen  = 1 + macLen
	proofLen    = 1 + 2 + sha256.Size + macLen
	replyLen    = 1 + 2 + macLen
)

// What a status byte says.
const (
	ok byte = iota
	badVersion
	badJob
	badSecret
	refused
)

// hasSecret is the flag that tells the peer whether there is a secret here: it
// turns the commonest mistake, a variable set on some ranks only, into a clear message.
const hasSecret = 1

// Client runs the handshake as the end that dialed conn, sends hello (at most
// MaxHello bytes), and returns the stream and the server's reply to it. It reads no byte beyond
// the handshake. The caller sets conn's deadline, and closes conn on an error.
func Client(conn net.Conn, job string, by Secret, hello []byte) (s *Stream, reply []byte, err error) {
	secret, err := by.begins(conn)
	if err != nil {
		return nil, nil, err
	}
	if len(hello) > MaxHello {
		return nil, nil, fmt.Errorf("auth: a hello of %d bytes; at most %d fit", len(hello), MaxHello)
	}
	job = over(conn, job)
	greeting := greet(job, secret)
	if _, err := conn.Write(greeting); err != nil {
		return nil, nil, fmt.Errorf("auth: sending the greeting: %w", err)
	}

	answer := make([]byte, answerLen, answerLen+nonceLen)
	if err := readAnswer(conn, answer); err != nil {
		return nil, nil, err
	}
	switch status := answer[statusAt]; status {
	case ok:
	case badJob:
		return nil, nil, fmt.Errorf("auth: %w", ErrJob)
	default:
		return nil, nil, fmt.Errorf("auth: %w: it answered with status %d", ErrProtocol, status)
	}
	answer = answer[:cap(answer)]
	if err := read(conn, answer[answerLen:], "the server's nonce"); err != nil {
		return nil, nil, err
	}

	proof := make([]byte, proofLen)
	said := append(greeting, answer...)
	binary.BigEndian.PutUint16(proof[1:], uint16(len(hello)))
	digest := sha256.Sum256(hello)
	copy(proof[3:], digest[:])
	copy(proof[proofLen-macLen:], mac(secret, "client", said, proof[:proofLen-macLen]))
	said = append(said, proof...)
	if _, err := conn.Write(proof); err != nil {
		return nil, nil, fmt.Errorf("auth: sending the proof: %w", err)
	}
	opening := make([]byte, openingLen)
	if err := read(conn, opening, "the server's proof"); err != nil {
		return nil, nil, err
	}
	if opening[0] != ok && opening[0] != badSecret {
		return nil, nil, fmt.Errorf("auth: %w: it answered a proof with status %d", ErrProtocol, opening[0])
	}
	if opening[0] == badSecret || !hmac.Equal(opening[1:], mac(secret, "server opens", said)) {
		return nil, nil, unauthorized(secret, answer[answerLen-1])
	}
	if len(hello) > 0 {
		if _, err := conn.Write(hello); err != nil {
			return nil, nil, fmt.Errorf("auth: sending the hello: %w", err)
		}
	}
	if reply, err = readReply(conn, secret, said); err == nil {
		s, err = newStream(conn, secret, said, true)
	}
	return s, reply, err
}

// readAnswer fills the part of the server's answer that is the same in all versions.
func readAnswer(conn net.Conn, answer []byte) error {
	if err := readMagic(conn, answer); err != nil {
		return err
	}
	if v := binary.BigEndian.Uint16(answer[len(magic):]); v != version {
		return versionError(v)
	}
	return nil
}

// readReply reads the last message of the handshake: the reply, or the refusal.
func readReply(conn net.Conn, secret, said []byte) ([]byte, error) {
	head := make([]byte, replyLen)
	if err := read(conn, head, "the server's reply"); err != nil {
		return nil, err
	}
	n := int(binary.BigEndian.Uint16(head[1:]))
	if head[0] != ok && head[0] != refused || n > MaxHello {
		return nil, fmt.Errorf("auth: %w: a reply with status %d and %d bytes", ErrProtocol, head[0], n)
	}
	reply := make([]byte, n)
	if err := read(conn, reply, "the server's reply"); err != nil {
		return nil, err
	}
	if !hmac.Equal(head[3:], mac(secret, "server replies", said, head[:3], reply)) {
		return nil, fmt.Errorf("auth: the server's reply was changed in transit: %w", ErrUnauthorized)
	}
	if head[0] == refused {
		return nil, &Refused{Text: string(reply)}
	}
	return reply, nil
}

// Server runs the handshake as the end that accepted conn, and returns the stream and the client's
// hello. It hands that hello, authenticated, to accept, whose reply (at most MaxHello bytes) goes
// back; an error of accept goes back as text, and both Client (as *Refused) and Server return it.
// It reads no byte beyond the handshake. The caller sets conn's deadline, and closes conn on an
// error.
func Server(conn net.Conn, job string, by Secret,
	accept func(hello []byte) (reply []byte, err error)) (s *Stream, hello []byte, err error) {
	secret, err := by.begins(conn)
	if err != nil {
		return nil, nil, err
	}
	job = over(conn, job)
	greeting := make([]byte, greetingLen)
	if err := readMagic(conn, greeting); err != nil {
		return nil, nil, err
	}
	answer := make([]byte, answerLen, answerLen+nonceLen)
	copy(answer, greet(job, secret)[:len(magic)+2])
	answer[answerLen-1] = flagsOf(secret)
	if v := binary.BigEndian.Uint16(greeting[len(magic):]); v != version {
		answer[statusAt] = badVersion
		conn.Write(answer) // a client that is gone by now needs no answer; so below
		return nil, nil, versionError(v)
	}
	if id := jobID(job); !bytes.Equal(greeting[greetingLen-jobLen:], id[:]) {
		answer[statusAt] = badJob
		conn.Write(answer)
		return nil, nil, fmt.Errorf("auth: %w", ErrJob)
	}

	flags := greeting[len(magic)+3]
	answer = append(answer, nonce()...)
	said := append(greeting, answer...)
	if _, err := conn.Write(answer); err != nil {
		return nil, nil, fmt.Errorf("auth: answering the greeting: %w", err)
	}

	proof := make([]byte, proofLen)
	if err := read(conn, proof, "the client's proof"); err != nil {
		return nil, nil, err
	}
	signed := proof[:proofLen-macLen]
	if !hmac.Equal(proof[proofLen-macLen:], mac(secret, "client", said, signed)) {
		conn.Write(append([]byte{badSecret}, make([]byte, openingLen-1)...))
		return nil, nil, unauthorized(secret, flags)
	}
	n := int(binary.BigEndian.Uint16(proof[1:]))
	if proof[0] != ok || n > MaxHello {
		return nil, nil, fmt.Errorf("auth: %w: a proof with status %d and a hello of %d bytes", ErrProtocol, proof[0], n)
	}
	said = append(said, proof...)
	if _, err := conn.Write(append([]byte{ok}, mac(secret, "server opens", said)...)); err != nil {
		return nil, nil, fmt.Errorf("auth: answering the client's proof: %w", err)
	}
	hello = make([]byte, n)
	if err := read(conn, hello, "the client's hello"); err != nil {
		return nil, nil, err
	}
	if digest := sha256.Sum256(hello); !bytes.Equal(digest[:], proof[3:3+sha256.Size]) {
		return nil, nil, fmt.Errorf("auth: the client's hello was changed in transit: %w", ErrUnauthorized)
	}
	if err = respond(conn, secret, said, hello, accept); err == nil {
		s, err = newStream(conn, secret, said, false)
	}
	return s, hello, err
}

// respond asks accept about the hello and sends what it says.
func respond(conn net.Conn, secret, said, hello []byte, accept func([]byte) ([]byte, error)) error {
	reply, err := accept(hello)
	if err == nil && len(reply) > MaxHello {
		err = fmt.Errorf("auth: a reply of %d bytes; at most %d fit", len(reply), MaxHello)
	}
	status := ok
	if err != nil {
		status = refused
		text := err.Error()
		reply = []byte(strings.ToValidUTF8(text[:min(len(text), MaxHello)], ""))
	}
	head := make([]byte, 3, replyLen+len(reply))
	head[0] = status
	binary.BigEndian.PutUint16(head[1:], uint16(len(reply)))
	head = append(head, mac(secret, "server replies", said, head[:3], reply)...)
	if _, werr := conn.Write(append(head, reply...)); err == nil && werr != nil {
		err = fmt.Errorf("auth: sending the reply: %w", werr)
	}
	return err
}

// over is the job of a handshake on conn. That of a connection through a relay is another one: an end that takes the
// connection for a direct one, and would send data plain, does not pass for an end that knows of the relay.
func over(conn net.Conn, job string) string {
	if isRelayed(conn) {
		return job + " through a relay"
	}
	return job
}

// isRelayed reports whether conn passes a relay, a *Conn of package relay.
func isRelayed(conn net.Conn) bool {
	_, is := conn.(interface{ Relayed() })
	return is
}

// greet makes a greeting.
func greet(job string, secret []byte) []byte {
	g := make([]byte, 0, greetingLen+answerLen+nonceLen+proofLen)
	g = append(g, magic...)
	g = binary.BigEndian.AppendUint16(g, version)
	g = append(g, 0, flagsOf(secret))
	g = append(g, nonce()...)
	id := jobID(job)
	return append(g, id[:]...)
}

func flagsOf(secret []byte) byte {
	if len(secret) > 0 {
		return hasSecret
	}
	return 0
}

func nonce() []byte {
	n := make([]byte, nonceLen)
	rand.Read(n) // never fails: crypto/rand's promise since Go 1.24
	return n
}

func jobID(job string) (id [jobLen]byte) {
	sum := sha256.Sum256([]byte(job))
	copy(id[:], sum[:])
	return id
}

// mac authenticates what was said, in a role: no message of one kind can pass for
// another, since no role is the start of another and each is followed by a zero.
func mac(secret []byte, role string, said ...[]byte) []byte {
	h := hmac.New(sha256.New, secret)
	io.WriteString(h, role)
	h.Write([]byte{0})
	for _, s := range said {
		h.Write(s)
	}
	return h.Sum(nil)
}

// readMagic fills message, looking at its first bytes before it waits for the
// rest: a stranger that says something else is known at once.
func readMagic(conn net.Conn, message []byte) error {
	if err := read(conn, message[:len(magic)], "the greeting"); err != nil {
		return err
	}
	if string(message[:len(magic)]) != magic {
		return fmt.Errorf("auth: %w: its first bytes are %q", ErrProtocol, message[:len(magic)])
	}
	return read(conn, message[len(magic):], "the greeting")
}

func read(conn net.Conn, b []byte, what string) error {
	if _, err := io.ReadFull(conn, b); err != nil {
		return fmt.Errorf("auth: reading %s: %w", what, err)
	}
	return nil
}

func versionError(theirs uint16) error {
	return fmt.Errorf("auth: %w: version %d here, %d there; run one build of the program on all ranks",
		ErrVersion, version, theirs)
}

func unauthorized(secret []byte, theirFlags byte) error {
	switch ours, theirs := len(secret) > 0, theirFlags&hasSecret != 0; {
	case ours && !theirs:
		return fmt.Errorf("auth: %w: the peer has none; give all ranks the same GOCCL_SECRET or GOCCL_SECRET_FILE",
			ErrUnauthorized)
	case !ours && theirs:
		return fmt.Errorf("auth: %w: the peer has one, this process has none; give all ranks the same GOCCL_SECRET or GOCCL_SECRET_FILE", ErrUnauthorized)
	}
	return fmt.Errorf("auth: %w; give all ranks the same GOCCL_SECRET or GOCCL_SECRET_FILE", ErrUnauthorized)
}
