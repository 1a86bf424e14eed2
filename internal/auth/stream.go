package auth

import (
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"

	"github.com/goccl/goccl/internal/simhost"
)

// Wire says how data travel between hosts.
type Wire uint8

const (
	Plain   Wire = iota
	Auth         // each byte is authenticated
	Encrypt      // and encrypted
)

// wires are the names that GOCCL_WIRE and ccl.Options.Wire have for them.
var wires = []string{"plain", "auth", "encrypt"}

func (w Wire) String() string { return wires[w] }

// ParseWire returns the Wire of that name.
func ParseWire(name string) (Wire, error) {
	i := slices.Index(wires, name)
	if i < 0 {
		return Plain, fmt.Errorf("%q; it is plain, auth or encrypt", name)
	}
	return Wire(i), nil
}

// socket is a net.Conn that a Stream keeps to itself.
type socket = net.Conn

// Stream is a connection after its handshake: [Client] and [Server] return it, and what is read and
// written from then on goes through it. Where the job has a secret each Write becomes records, and
// Read returns what has opened; without one both are the connection's own. One goroutine may read
// while others write.
type Stream struct {
	socket
	prk    []byte // what the connection's keys are derived from; nil without a secret
	dialed bool   // by this end

	// What comes in.
	in     *Direction
	record []byte // as much of the next record as has come
	plain  []byte // what has not been read of the last one
	broken error  // nothing more is read

	mu     simhost.Mutex // guards what follows: what goes out
	out    *Direction
	unsent []byte // what the connection has not taken, from within a record on
}

// newStream is conn after a handshake in which said was said.
func newStream(conn net.Conn, secret, said []byte, dialed bool) (*Stream, error) {
	s := &Stream{socket: conn, dialed: dialed}
	if len(secret) == 0 {
		return s, nil
	}
	// Both nonces, the job and the hello are in what was said: no two connections have the same keys.
	salt := sha256.Sum256(said)
	var err error
	if s.prk, err = hkdf.Extract(sha256.New, secret, salt[:]); err != nil {
		return nil, err
	}
	if s.out, s.in, err = s.directions("frames", true); err != nil {
		return nil, err
	}
	return s, nil
}

// directions are the two directions of the stream named what: out is what this end sends.
func (s *Stream) directions(what string, hide bool) (out, in *Direction, err error) {
	theirs, mine := what+" to the client", what+" to the server"
	if !s.dialed {
		theirs, mine = mine, theirs
	}
	if out, err = newDirection(s.prk, mine, hide); err == nil {
		in, err = newDirection(s.prk, theirs, hide)
	}
	return out, in, err
}

// Pipe returns the two ends of a Stream that does not leave this process, which needs no handshake.
func Pipe() (a, b *Stream) {
	c, d := net.Pipe()
	return &Stream{socket: c}, &Stream{socket: d}
}

// Read returns what the other end has written. After ErrChanged it returns nothing more.
func (s *Stream) Read(b []byte) (int, error) {
	if s.in == nil {
		return s.socket.Read(b)
	}
	for len(s.plain) == 0 && len(b) > 0 {
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, s.plain)
	if s.plain = s.plain[n:]; len(s.plain) == 0 && cap(s.record) > keptRoom {
		s.record, s.plain = nil, nil // one large record does not cost its memory for good
	}
	return n, nil
}

// fill reads the next record, and not a byte more. After a deadline it goes on where it was.
func (s *Stream) fill() error {
	for need := RecordHead; ; {
		if s.broken != nil {
			return s.broken
		}
		if len(s.record) >= RecordHead {
			if need, s.broken = RecordLen(s.record); s.broken != nil {
				continue
			}
		}
		if len(s.record) == need {
			s.plain, s.broken = s.in.Open(s.record)
			s.record = s.record[:0] // plain lies there until it is read
			return s.broken
		}
		s.record = slices.Grow(s.record, need-len(s.record))
		n, err := s.socket.Read(s.record[len(s.record):need])
		s.record = s.record[:len(s.record)+n]
		if err == io.EOF && len(s.record) > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil && len(s.record) < need {
			return err
		}
	}
}

// keptRoom is how much memory a Stream keeps for what it reads next, and for what it writes.
const keptRoom = 1 << 10

// Write sends b, and takes all of it. What the connection has not taken by the write deadline is
// kept, and goes before what is written next, so that no record is cut; the error is
// os.ErrDeadlineExceeded then. After any other error nothing is kept. Without b it sends what is.
func (s *Stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var late error
	for rest := b; ; {
		part := rest[:min(len(rest), MaxRecord)]
		rest = rest[len(part):]
		switch {
		case len(part) == 0:
		case s.out == nil:
			s.unsent = append(s.unsent, part...)
		default:
			s.unsent = s.out.Seal(s.unsent, part, nil)
		}
		if late == nil {
			err := s.flush()
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return len(b), err
			}
			late = err
		}
		if len(rest) == 0 {
			return len(b), late
		}
	}
}

// flush sends what is there. s.mu is held.
func (s *Stream) flush() error {
	if len(s.unsent) == 0 {
		return nil
	}
	n, err := s.socket.Write(s.unsent)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		s.unsent = append(s.unsent[:0], s.unsent[n:]...)
	case cap(s.unsent) > keptRoom:
		s.unsent = nil // an end that was slow once does not cost its memory for good
	default:
		s.unsent = s.unsent[:0]
	}
	return err
}

// Unsent is how many bytes are kept to be sent.
func (s *Stream) Unsent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.unsent)
}

// CloseWrite ends what this end sends, where the connection can.
func (s *Stream) CloseWrite() error {
	if half, ok := s.socket.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// Drain discards what comes until the connection ends: a process that is listened to no more may still be told why.
func (s *Stream) Drain() { _, _ = io.Copy(io.Discard, s.socket) }

// Take ends the Stream and returns its connection, for data that travel as w says: out seals what
// this end sends, and in opens what it receives; both are nil for Plain. What passes a relay (package
// relay) is always encrypted, at both ends: the handshake sees to it that both know. Only package tcp
// calls it: see test/imports.
func (s *Stream) Take(w Wire) (conn net.Conn, out, in *Direction, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isRelayed(s.socket) {
		w = Encrypt
	}
	switch {
	case len(s.record)+len(s.plain)+len(s.unsent) > 0:
		err = errors.New("auth: a stream with bytes under way")
	case w == Plain:
	case s.prk == nil:
		err = ErrNoSecret
	default:
		out, in, err = s.directions("data "+w.String(), w == Encrypt)
	}
	return s.socket, out, in, err
}

// ErrNoSecret is the error for a job that is to protect its data and has no secret.
var ErrNoSecret = errors.New("the job has no secret to protect data with: give all ranks the same GOCCL_SECRET_FILE, a file that only its owner can read")
