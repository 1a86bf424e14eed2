package boot

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
)

// Hall is a Store in the memory of one process, such as a launcher, which others reach by TCP as
// [DialHall] or GOCCL_HALL says. So a value stays when the process that has set it is lost. Each
// connection proves the job's secret, and is encrypted with it, as those of the bootstrap are.
type Hall struct {
	memoryStore
	acceptor
	addr   string
	secret auth.Secret
	job    string // see party
}

// hallJob is the job of a hall's handshakes, so that it takes nobody for one of a bootstrap.
const hallJob = "goccl hall"

// ListenHall returns a Hall that listens at addr, host:port; port 0 takes a free one, of
// GOCCL_PORTS where that is set. The secret is known to all processes of the job; nil takes that of
// the environment. Where that has none, anybody may come, unless GOCCL_REQUIRE_SECRET refuses that;
// a hall that other hosts reach so warns. Hex digits of it stand for their bytes, as they do in
// GOCCL_SECRET. The hall is that of the job that GOCCL_JOB names, and refuses processes of another.
func ListenHall(addr string, secret []byte) (*Hall, error) {
	p, err := ofJob(secret, os.Environ())
	if err != nil {
		return nil, err
	}
	return listenHall(os.Getenv, addr, p)
}

// ServeHall returns a Hall at a listener, which it closes. The secret is that of ListenHall.
func ServeHall(l net.Listener, secret []byte) (*Hall, error) {
	p, err := ofJob(secret, os.Environ())
	if err != nil {
		return nil, err
	}
	return serveHall(l, p, newMemoryStore()), nil
}

// listenHall is ListenHall in the environment of the processes that will come.
func listenHall(getenv func(string) string, addr string, p party) (*Hall, error) {
	l, err := listenerOf(getenv, addr, p)
	if err != nil {
		return nil, err
	}
	return serveHall(l, p, newMemoryStore()), nil
}

// listenerOf is the listener of a hall at addr.
func listenerOf(getenv func(string) string, addr string, p party) (net.Listener, error) {
	l, err := inet.ListenAs(getenv, addr)
	if err != nil {
		return nil, cannotListen(err, "the hall cannot listen at %s", addr)
	}
	if a := addrOf(l.Addr()); !p.secret.Known() && !a.IsLoopback() {
		slog.Warn("goccl: "+auth.Warning(os.Environ()), "hall", l.Addr().String())
	}
	return l, nil
}

func serveHall(l net.Listener, p party, state memoryStore) *Hall {
	h := &Hall{state, newAcceptor(0), l.Addr().String(), p.secret, p.job}
	h.listen(l, p.secret, h.greet)
	return h
}

// Secret is the job's, nil if it has none.
func (h *Hall) Secret() []byte { return h.secret.Bytes() }

// Addr returns where h listens, as host:port.
func (h *Hall) Addr() string { return h.addr }

// Close ends h: whoever asks it gets an error.
func (h *Hall) Close() error {
	h.close()
	if h.log != nil {
		h.memoryStore.mu.Lock()
		defer h.memoryStore.mu.Unlock()
		return h.log.Close()
	}
	return nil
}

// drain waits until nobody is connected any more, at most for that long.
func (h *Hall) drain(limit time.Duration) {
	const look = 2 * time.Millisecond
	for over := time.Now().Add(limit); time.Now().Before(over); time.Sleep(look) {
		h.acceptor.mu.Lock()
		n := len(h.conns)
		h.acceptor.mu.Unlock()
		if n == 0 {
			return
		}
	}
}

// greet is the handshake with a connection, and then its requests.
func (h *Hall) greet(conn net.Conn, d *door, stranger *auth.Stranger) {
	defer h.forget(conn)
	conn.SetDeadline(time.Now().Add(handshakeLimit))
	s, _, err := auth.Server(conn, hallJob, d.secret, func(job []byte) ([]byte, error) {
		if other := string(job); other != h.job {
			return nil, errors.New(otherJob(h.job, other))
		}
		if !stranger.Leave() { // what is let in must not be dropped to make room
			return nil, net.ErrClosed
		}
		return nil, nil
	})
	stranger.Judge(err)
	if err != nil {
		return
	}
	conn.SetDeadline(time.Time{})
	h.serve(s)
}

// serve answers the requests of a connection, one after the other. A reader of its own notices that
// the client has gone, or the hall ends, while a request waits.
func (h *Hall) serve(s *auth.Stream) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	requests := make(chan request)
	h.wg.Go(func() {
		defer cancel()
		for {
			q, err := readRequest(s)
			if err != nil {
				return
			}
			select {
			case requests <- q:
			case <-ctx.Done():
				return
			case <-h.done:
				return
			}
		}
	})
	will := "" // the key that is set where the client goes without a word
	defer func() { h.carryOut(will) }()
	for {
		select {
		case q := <-requests:
			var r reply
			if q.what != askWill {
				r = h.answer(ctx, q)
			} else if will = q.key; q.n == 0 {
				will = ""
			}
			if ctx.Err() != nil { // the client has gone, or the hall ends: that may be the answer's error
				return
			}
			if _, err := s.Write(r.append(nil)); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// carryOut sets key for a client that has gone. Where it is the hall that ends, nobody knows how the client is.
func (h *Hall) carryOut(key string) {
	select {
	case <-h.done:
	default:
		if key != "" {
			h.Set(context.Background(), key, nil)
		}
	}
}

// answer carries q out.
func (h *Hall) answer(ctx context.Context, q request) (r reply) {
	var err error
	switch q.what {
	case askSet:
		err = h.Set(ctx, q.key, q.value)
	case askGet:
		r.value, err = h.Get(ctx, q.key)
	case askWait:
		_, err = h.Get(ctx, q.key)
	case askAdd:
		r.n, err = h.Add(ctx, q.key, q.n)
	}
	if err != nil {
		r = reply{code: asError(err).Code, value: []byte(asError(err).Text)}
	}
	return r
}

// What a request asks for.
const (
	askSet byte = iota + 1
	askGet
	askWait
	askAdd
	askWill // n 1: to set key once this connection ends; 0: not to
)

// request is what a client sends:
//
//	what 1, number 8, length of the key 2, length of the value 4, key, value
//
// Numbers are big-endian.
type request struct {
	what  byte
	n     int64
	key   string
	value []byte
}

const (
	requestHead = 15
	replyHead   = 13
)

func (q request) append(b []byte) []byte {
	b = append(b, q.what)
	b = binary.BigEndian.AppendUint64(b, uint64(q.n))
	b = binary.BigEndian.AppendUint16(b, uint16(len(q.key)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(q.value)))
	return append(append(b, q.key...), q.value...)
}

// readRequest reads one. What is allocated grows with what has arrived.
func readRequest(r io.Reader) (q request, err error) {
	var head [requestHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return q, err
	}
	q.what, q.n = head[0], int64(binary.BigEndian.Uint64(head[1:]))
	key, value := int(binary.BigEndian.Uint16(head[9:])), int64(binary.BigEndian.Uint32(head[11:]))
	if q.what < askSet || q.what > askWill || key == 0 || key > MaxKey || value > MaxStored {
		return q, errFrame
	}
	b, err := readBytes(r, int64(key)+value)
	if err != nil {
		return q, err
	}
	q.key, q.value = string(b[:key]), b[key:]
	return q, nil
}

// reply is what the hall sends back: code 1, number 8, length 4, the value or what went wrong.
type reply struct {
	code  Code
	n     int64
	value []byte
}

func (r reply) append(b []byte) []byte {
	b = append(b, byte(r.code))
	b = binary.BigEndian.AppendUint64(b, uint64(r.n))
	b = binary.BigEndian.AppendUint32(b, uint32(len(r.value)))
	return append(b, r.value...)
}

func readReply(from io.Reader) (r reply, err error) {
	var head [replyHead]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return r, err
	}
	n := int64(binary.BigEndian.Uint32(head[9:]))
	if int(head[0]) >= len(codeText) || n > MaxStored {
		return r, errFrame
	}
	r.code, r.n = Code(head[0]), int64(binary.BigEndian.Uint64(head[1:]))
	r.value, err = readBytes(from, n)
	return r, err
}

// maxHeld is how many bytes of keys and values a Hall holds at most.
const maxHeld = 256 << 20

// memoryStore is the Store of a Hall, for its own process.
type memoryStore struct {
	mu      *sync.Mutex
	values  map[string][]byte
	numbers map[string]int64
	held    *int
	waiting map[string]chan struct{} // closed once the key has a value
	log     *os.File                 // see ListenHallFile; nil: none
}

func newMemoryStore() memoryStore {
	return memoryStore{mu: new(sync.Mutex), held: new(int), values: map[string][]byte{}, numbers: map[string]int64{},
		waiting: map[string]chan struct{}{}}
}

// Set gives key a value.
func (s memoryStore) Set(ctx context.Context, key string, value []byte) error {
	if err := checkKey(ctx, key, len(value)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(key, value)
}

// put is Set. mu is held.
func (s memoryStore) put(key string, value []byte) error {
	old, there := s.values[key]
	more := len(value) - len(old)
	if !there {
		more += len(key)
	}
	if *s.held+more > maxHeld {
		return fault(System, "the hall is full: it holds %d bytes, and takes at most %d", *s.held, maxHeld)
	}
	if err := s.note(request{what: askSet, key: key, value: value}); err != nil {
		return err
	}
	*s.held += more
	s.values[key] = bytes.Clone(value)
	if there := s.waiting[key]; there != nil {
		close(there)
		delete(s.waiting, key)
	}
	return nil
}

// Get returns the value of key, and waits until there is one.
func (s memoryStore) Get(ctx context.Context, key string) ([]byte, error) {
	if err := checkKey(ctx, key, 0); err != nil {
		return nil, err
	}
	for {
		s.mu.Lock()
		v, ok := s.values[key]
		if ok {
			s.mu.Unlock()
			return bytes.Clone(v), nil
		}
		there := s.waiting[key]
		if there == nil {
			there = make(chan struct{})
			s.waiting[key] = there
		}
		s.mu.Unlock()
		select {
		case <-there:
		case <-ctx.Done():
			return nil, ended(ctx.Err(), fmt.Sprintf("the context ended before %s had a value in the store", key))
		}
	}
}

// Wait waits for all keys.
func (s memoryStore) Wait(ctx context.Context, keys ...string) error { return waitAll(ctx, s, keys) }

// Add changes a number.
func (s memoryStore) Add(ctx context.Context, key string, n int64) (int64, error) {
	if err := checkKey(ctx, key, 0); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sum(key, n)
}

// sum is Add. mu is held.
func (s memoryStore) sum(key string, n int64) (int64, error) {
	old, there := s.numbers[key]
	if n == 0 {
		return old, nil
	}
	sum, err := plus(key, old, n)
	if err != nil {
		return 0, err
	}
	if !there {
		if *s.held+len(key) > maxHeld {
			return 0, fault(System, "the hall is full: it holds %d bytes, and takes at most %d", *s.held, maxHeld)
		}
	}
	if err := s.note(request{what: askAdd, key: key, n: n}); err != nil {
		return 0, err
	}
	if !there {
		*s.held += len(key)
	}
	s.numbers[key] = sum
	return sum, nil
}

// has reports whether key has a value.
func (s memoryStore) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.values[key]
	return ok
}

// castagnoli is the table of the sums in a hall's file.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// logEntry is q as a file has it.
func logEntry(q request) []byte {
	text := q.append(nil)
	b := binary.BigEndian.AppendUint32(nil, uint32(len(text)))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(text, castagnoli))
	return append(b, text...)
}

// note writes q to the log, if s has one, before it is carried out. mu is held.
func (s *memoryStore) note(q request) error {
	if s.log == nil {
		return nil
	}
	n, err := s.log.Write(logEntry(q))
	if err == nil {
		return nil
	}
	// Half an entry would hide those that follow it, as when the disk has space again.
	if at, lost := s.log.Seek(int64(-n), io.SeekCurrent); lost != nil || s.log.Truncate(at) != nil {
		s.log.Close() // so that none follows
	}
	return fault(System, "the hall's file: %v", err)
}
