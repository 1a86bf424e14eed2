package mail

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/backoff"
)

// Way is how the ranks of a process reach others, and what time it is for them. Ranks are those of the world.
type Way interface {
	// Lived is the time that this process has lived through.
	Lived() time.Duration
	// Attend has what is not lived through from now on, since the process is stopped, count as little as it
	// can: something is due soon.
	Attend()
	// Here reports whether a rank lives in this process.
	Here(rank int) bool
	// Dial makes the stream of what from, a rank of this process, sends to rank to. The Office
	// of that rank is given the other end, by Accept. It takes no longer than one attempt should.
	Dial(ctx context.Context, from, to int) (*auth.Stream, error)
	// Reads reports whether the memory of a rank may be read: it is on this host.
	Reads(rank int) bool
}

// Office is the mail of all ranks of a process, in one job.
type Office struct {
	way  Way
	pid  uint64
	ctx  context.Context
	stop context.CancelFunc

	pieces  sync.Pool // memory of frames that are written
	running sync.WaitGroup
	starts  sync.Mutex // guards ending, and is taken with anything else held
	ending  bool       // no goroutine begins any more

	mu       sync.Mutex
	boxes    map[int]*Box
	lines    map[[2]int]*line // by from and to
	accounts map[member]*Account
	inlets   map[[2]int]*inlet       // by from and to: those of the last stream that has begun
	streams  map[*auth.Stream]*inlet // nil: of a line
	closed   bool
}

// member is a rank of the world in a Comm.
type member struct {
	comm uint64
	rank int
}

// NewOffice makes the Office of a process, which ends with ctx at the latest.
func NewOffice(ctx context.Context, way Way) *Office {
	o := &Office{way: way, pid: uint64(os.Getpid()), boxes: map[int]*Box{}, lines: map[[2]int]*line{}}
	o.accounts, o.inlets, o.streams = map[member]*Account{}, map[[2]int]*inlet{}, map[*auth.Stream]*inlet{}
	o.pieces.New = func() any { return new([frameBytes + pieceMost]byte) }
	o.ctx, o.stop = context.WithCancel(ctx)
	return o
}

// Accept takes the stream that another Office has dialed, of what its rank from sends to rank to, which
// lives here.
func (o *Office) Accept(s *auth.Stream, from, to int) {
	in := &inlet{office: o, from: from, to: to, box: o.box(to), stream: s}
	in.moving, in.over = map[uint64]*Receiving{}, make(chan struct{})
	if !o.keep(s, in) {
		s.Close()
		return
	}
	o.run(in.read)
}

// run runs f on a goroutine that Close waits for.
func (o *Office) run(f func()) {
	o.starts.Lock()
	defer o.starts.Unlock()
	if !o.ending {
		o.running.Go(f)
	}
}

// cutOff is Account.severed for messages of several Comms.
func cutOff(ms []pending, w int, why error) {
	of := map[*Account][]pending{}
	for _, m := range ms {
		of[m.of()] = append(of[m.of()], m)
	}
	for a, ms := range of {
		a.severed(ms, w, why)
	}
}

// distrust fails all Comms of rank self of this process that rank w is in, too: not all that w has sent has
// come.
func (o *Office) distrust(self, w int, why error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for of, a := range o.accounts {
		if of.rank == self && slices.Contains(a.in.Others, w) {
			a.severed(nil, w, why)
		}
	}
}

// keep has Close end s. It is false if that is over.
func (o *Office) keep(s *auth.Stream, in *inlet) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.streams[s] = in
	}
	return !o.closed
}

func (o *Office) unkeep(s *auth.Stream) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.streams, s)
}

func (o *Office) isOpen() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.closed
}

// box is that of a rank of this process.
func (o *Office) box(rank int) *Box {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.boxOf(rank)
}

// boxOf is box. o.mu is held.
func (o *Office) boxOf(rank int) *Box {
	b := o.boxes[rank]
	if b == nil {
		b = newBox()
		o.boxes[rank] = b
	}
	return b
}

// line is that from a rank of this process to another.
func (o *Office) line(from, to int) *line {
	o.mu.Lock()
	defer o.mu.Unlock()
	l := o.lines[[2]int{from, to}]
	if l == nil {
		l = &line{office: o, from: from, to: to, out: map[uint64]*Sending{}}
		if o.way.Here(to) {
			l.box = o.boxOf(to)
		}
		o.lines[[2]int{from, to}] = l
	}
	return l
}

// linesOf are those from a rank.
func (o *Office) linesOf(from int) (list []*line) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for of, l := range o.lines {
		if of[0] == from {
			list = append(list, l)
		}
	}
	return list
}

// bye closes an Account, all of whose sends have ended. Other ranks that this one has written to are told.
func (o *Office) bye(a *Account) {
	a.mu.Lock()
	a.silent = true // first: what breaks from here on cuts nothing of it off
	a.mu.Unlock()
	for _, l := range o.linesOf(a.in.Self) {
		l.mu.Lock()
		delete(l.cut, a)
		switch {
		case l.box == nil && (l.streams.now != nil || l.streams.dialing):
			l.put(outgoing{f: frame{kind: frameBye, path: Path{Comm: a.in.Comm}}})
			l.mu.Unlock()
		case l.box != nil:
			l.mu.Unlock()
			o.left(member{a.in.Comm, l.to}, a.in.Self)
		default:
			l.mu.Unlock()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.accounts[member{a.in.Comm, a.in.Self}] == a {
		delete(o.accounts, member{a.in.Comm, a.in.Self})
	}
}

// Shut refuses what has come and will come for a rank of this process in a Comm that it has closed, or that
// has failed, whether or not it has had an Account there: what nobody will receive gives its sender's
// credit back.
func (o *Office) Shut(comm uint64, self int, closed bool) {
	code := takenFailed
	if closed {
		code = takenClosed
	}
	o.box(self).shut(comm, code)
}

// left tells an Account here that rank w has closed the Comm.
func (o *Office) left(of member, w int) {
	o.mu.Lock()
	a := o.accounts[of]
	o.mu.Unlock()
	if a != nil {
		a.peerLeft(w)
	}
}

// unreached is why a rank is not connected, if that is known.
func (o *Office) unreached(from, to int) error {
	if to == Any {
		return nil
	}
	l := o.line(from, to)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.streams.err
}

// closeTime is how long Close waits for what is being sent to be taken.
const closeTime = time.Second

// Close ends the Office. What has been sent is on its way, and ends well: a stream is closed once the
// other end has read it, or does not.
func (o *Office) Close() {
	until := o.way.Lived() + closeTime
	wait := backoff.Sleep{First: 50 * time.Microsecond, Most: 5 * time.Millisecond}
	for !o.written() && o.way.Lived() < until {
		wait.Next()
	}
	o.stop()
	o.mu.Lock()
	o.closed = true
	streams := o.streams
	o.streams = map[*auth.Stream]*inlet{}
	o.mu.Unlock()
	for s := range streams {
		_ = s.CloseWrite() // what the other end still says is read, or it might lose what it has not read
	}
	o.starts.Lock()
	o.ending = true
	o.starts.Unlock()
	over := make(chan struct{})
	go func() {
		o.running.Wait()
		close(over)
	}()
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for done := false; !done && o.way.Lived() < until; {
		select {
		case <-over:
			done = true
		case <-tick.C:
		}
	}
	for s := range streams { // also those that nothing reads, since that was to begin as no goroutine did any more
		s.Close()
	}
	<-over
}

// written reports whether all has been written that is to be: messages and answers.
func (o *Office) written() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, in := range o.streams {
		if in != nil && in.busy() {
			return false
		}
	}
	for _, l := range o.lines {
		l.mu.Lock()
		busy := l.streams.now != nil && (l.writing || len(l.queue) > 0)
		l.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}
