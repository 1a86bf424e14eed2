package boot

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
)

const (
	// DefaultLimit is how long joining and each AllGather may take where the
	// context has no deadline.
	DefaultLimit = 5 * time.Minute
	// grace is how long a rank outstays its deadline, so that the verdict of all
	// reaches it: it names who is missing, which no rank but rank 0 knows.
	grace = 100 * time.Millisecond
)

var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Boot is a connected bootstrap: this rank's place among all, and one way to swap
// bytes with them. It is a ccl.Bootstrap. It is used by one goroutine at a time;
// Close may be called from any.
type Boot struct {
	rank, size int
	limit      time.Duration
	secret     auth.Secret
	addr       netip.Addr
	hostID     string

	gather func(ctx context.Context, mine []byte) ([][]byte, error) // other than over conn: a job of goroutines, or of one
	conn   *auth.Stream                                             // to the root server or the relay of this host
	in     <-chan frame                                             // what comes over conn
	over   <-chan struct{}                                          // closed when only a failure can come
	via    join                                                     // who is at the other end
	// the root server or the relay, if this process runs one
	server interface{ close() }

	mu     sync.Mutex
	closed bool
	err    error // the job has failed
}

// Rank returns this process's rank, from 0.
func (b *Boot) Rank() int { return b.rank }

// Size returns the number of ranks.
func (b *Boot) Size() int { return b.size }

// Secret returns what all ranks of the job know and nobody else does, for connections made later.
// It is nil if there is none.
func (b *Boot) Secret() []byte { return b.secret.Bytes() }

// Addr returns the local address of the interface by which this host reaches rank 0, or in a large
// job the relay through which it does. On rank 0 it is the address by which others reached it. It is
// the zero Addr if it is not known.
func (b *Boot) Addr() netip.Addr { return b.addr }

// Limit returns how long each AllGather may take where its context has no deadline.
func (b *Boot) Limit() time.Duration { return cmp.Or(b.limit, DefaultLimit) }

// HostID returns a value that ranks of one host share, or "" if the ranks are to find out
// themselves.
func (b *Boot) HostID() string { return b.hostID }

// AllGather returns the value mine of every rank, indexed by rank. A value has at most MaxValue
// bytes. All ranks must call it the same number of times. If it fails on one rank, it fails on all,
// and the bootstrap is over. The values may be shared: do not change them.
func (b *Boot) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	if err := noContext(ctx); err != nil {
		return nil, err.of(b.rank, b.size)
	}
	if len(mine) > MaxValue {
		return nil, fault(Argument, "a value of %d bytes; AllGather takes at most %d of each rank", len(mine),
			MaxValue).of(b.rank, b.size)
	}
	if err := b.state(); err != nil {
		return nil, err
	}
	if b.gather != nil {
		values, err := b.gather(ctx, mine)
		return values, b.fail(err)
	}
	ctx, cancel := limited(ctx, b.limit)
	defer cancel()
	payload := binary.BigEndian.AppendUint32(make([]byte, 0, valueHead+len(mine)), left(ctx))
	f, err := b.exchange(ctx, frame{kind: frameValue, rank: b.rank, data: append(payload, mine...)})
	if err != nil {
		return nil, b.fail(err)
	}
	if f.kind != frameTable {
		return nil, b.fail(b.heard(f))
	}
	values, err := parseTable(f.data, b.size)
	if err != nil {
		return nil, b.fail(fault(System, "AllGather: the answer is garbled: %v", err))
	}
	return values, nil
}

// Watch returns a channel that is closed as soon as a rank is gone, for a rank that needs all
// others before the next AllGather. That AllGather names the lost rank. The channel is nil where
// this cannot be known.
func (b *Boot) Watch() <-chan struct{} {
	if b.conn == nil || b.state() != nil {
		return nil
	}
	b.conn.Write(frame{kind: frameWatch, rank: b.rank}.encode()) // where this fails, the connection has ended
	return b.over
}

// Refuse tells the other ranks why this one cannot take part although it has joined: their next
// AllGather, or the one under way, fails with that reason. The bootstrap is over then.
func (b *Boot) Refuse(why error) {
	if b.state() != nil {
		return
	}
	e := &Error{Code: Argument, Peer: b.rank, Text: why.Error(), Err: why}
	if b.fail(e); b.conn == nil {
		if s, ok := b.server.(seat); ok {
			s.refuse(e)
		}
		return
	}
	b.conn.Write(leaving(b.rank, e).encode())
	select {
	case <-b.over: // the verdict has come back, so all that this process serves have it
	case <-time.After(confirmLimit + grace):
	}
}

// use makes conn, to who, the connection of b.
func (b *Boot) use(conn *auth.Stream, who join) {
	over := make(chan struct{})
	b.conn, b.in, b.over, b.via = conn, listen(conn, who, selfJoin(b.rank, b.size), over), over, who
}

// announce is the first phase: it says that this rank is here, and hears the verdict.
// If the two have crossed, or the server of this host was lost, it is worth trying again.
func (b *Boot) announce(ctx context.Context) (again bool, err error) {
	j := selfJoin(b.rank, b.size)
	j.Left = left(ctx)
	f, err := b.exchange(ctx, frame{kind: frameJoin, rank: b.rank, data: j.encode()})
	if err != nil {
		return errors.Is(err, Lost), err
	}
	v, err := parseVerdict(f.data)
	if f.kind != frameVerdict || err != nil {
		return false, fault(System, "rank 0's verdict on joining is garbled (kind %d)", f.kind)
	}
	if v.Code != 0 {
		return false, v.error()
	}
	if v.Taken == 0 {
		return true, fault(System, "the job became complete while this rank was joining")
	}
	b.addr = v.Addr
	if v.Secret != nil {
		b.secret = auth.Given(v.Secret)
	}
	return false, nil
}

// heard is the error in a frame that is no table.
func (b *Boot) heard(f frame) error {
	v, err := parseVerdict(f.data)
	if f.kind != frameVerdict || err != nil || v.Code == 0 {
		return fault(System, "the bootstrap's answer is garbled (kind %d)", f.kind)
	}
	return v.error()
}

// exchange sends a frame and returns what comes back.
func (b *Boot) exchange(ctx context.Context, f frame) (frame, error) {
	stop := context.AfterFunc(ctx, func() { b.conn.SetWriteDeadline(time.Now().Add(grace)) })
	defer stop()
	b.conn.Write(f.encode()) // where this fails, reading says why
	select {
	case answer, ok := <-b.in:
		return b.answered(answer, ok)
	case <-ctx.Done():
	}
	select {
	case answer, ok := <-b.in: // listen has confirmed it: the others go on
		return b.answered(answer, ok)
	default:
	}
	// Over, except for the verdict of all ranks, which others may wait for: see hostServer.
	canceled := errors.Is(ctx.Err(), context.Canceled)
	if canceled {
		b.conn.Write(leaving(b.rank, &Error{Code: Canceled, Peer: b.rank}).encode())
	}
	over, stopOver := lived.Within(context.WithoutCancel(ctx), grace)
	defer stopOver()
	select {
	case answer, ok := <-b.in:
		if !canceled {
			return b.answered(answer, ok)
		}
	case <-over.Done():
	}
	if canceled {
		return frame{}, ended(ctx.Err(), "canceled during the bootstrap")
	}
	return frame{}, ended(ctx.Err(), "the time is over without a verdict from rank 0")
}

func (b *Boot) answered(f frame, ok bool) (frame, error) {
	if !ok {
		return frame{}, b.cut()
	}
	return f, nil
}

// listen reads what comes from one to the other until the connection ends, and confirms it at once, whether
// or not a call waits for it: see hostServer. It closes over when nothing more can come but a failure.
func listen(conn *auth.Stream, from, to join, over chan<- struct{}) <-chan frame {
	in := make(chan frame, 4) // one table, one verdict, and room for what makes no sense
	go func() {
		defer close(in)
		end := sync.OnceFunc(func() { close(over) })
		defer end()
		r := bufio.NewReader(conn)
		for err := error(nil); err == nil; {
			var f frame
			if f, err = readFrame(r, max(maxTable(to.Size), maxVerdict)); errors.Is(err, auth.ErrChanged) {
				e := changed(from, to)
				conn.Write(leaving(to.Rank, e).encode())
				defer conn.Drain()
				f = frame{kind: frameVerdict, data: verdictOf(e).frame()[frameHead:]}
			} else if err != nil {
				return
			}
			select {
			case in <- f:
			default:
				conn.Close()
				return
			}
			if v, err := parseVerdict(f.data); f.kind == frameVerdict && (err != nil || v.Code != 0) {
				end()
			}
			conn.Write(frame{kind: frameAck}.encode()) // lost only if nobody is there to need it
		}
	}()
	return in
}

// cut is the error of a connection that ended under a call.
func (b *Boot) cut() *Error {
	return fault(Lost, "rank %d (%v), through which this rank reaches the others, was lost", b.via.Rank,
		b.via).by(b.via.Rank)
}

// state is why b cannot be used, if it cannot.
func (b *Boot) state() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return fault(Closed, "used after Close").of(b.rank, b.size)
	}
	return b.err
}

// fail keeps the first error, signed by this rank; nil stays nil.
func (b *Boot) fail(err error) error {
	if err == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return fault(Closed, "closed during the call").of(b.rank, b.size)
	case b.err == nil:
		b.err = asError(err).of(b.rank, b.size)
	}
	return b.err
}

// asError is err as this package's own.
func asError(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return &Error{Code: System, Rank: -1, Size: -1, Peer: -1, Text: err.Error(), Err: err}
}

// Close ends the bootstrap for this rank and releases all it holds. Everything that
// AllGather has promised to others has been delivered by then: close when this rank
// needs no more, without asking how far the others are. A second Close waits as the first does.
func (b *Boot) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.hangUp()
	return nil
}

func (b *Boot) hangUp() {
	if b.conn != nil {
		b.conn.Close()
	}
	if b.server != nil {
		b.server.close()
	}
}

// limited gives ctx the limit d if it has none.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if _, ok := lived.Left(ctx); ok {
		return context.WithCancel(ctx)
	}
	return lived.Within(ctx, cmp.Or(d, DefaultLimit))
}

// left is how many milliseconds rank 0 has to find a verdict in: a little less than
// ctx has, so that the verdict is here in time.
func left(ctx context.Context) uint32 {
	d, ok := lived.Left(ctx)
	if !ok {
		return 0
	}
	return milliseconds(d - min(d/10, grace))
}

// alone is a job of one rank.
func alone(secret auth.Secret, hostID string) *Boot {
	b := &Boot{size: 1, secret: secret, hostID: hostID, addr: loopback}
	b.gather = func(ctx context.Context, mine []byte) ([][]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, ended(err, "canceled before the AllGather")
		}
		return [][]byte{slices.Clone(mine)}, nil
	}
	return b
}

// ended is an error for a context that is over.
func ended(err error, text string) *Error {
	code := Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = Timeout
	}
	e := fault(code, "%s", text)
	e.Err = err
	return e
}
