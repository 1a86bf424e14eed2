package mail

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/backoff"
)

// Way is how the ranks of a process reach others. Ranks are those of the world.
type Way interface {
	// Here reports whether a rank lives in this process.
	Here(rank int) bool
	// Dial makes the stream of what from, a rank of this process, sends to rank to. The Office
	// of that rank is given the other end, by Accept.
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

	running sync.WaitGroup
	starts  sync.Mutex // guards ending, and is taken with anything else held
	ending  bool       // no goroutine begins any more

	mu       sync.Mutex
	boxes    map[int]*Box
	lines    map[[2]int]*line // by from and to
	accounts map[member]*Account
	streams  map[*auth.Stream]*inlet // nil: of a line
	closed   bool
}

// member is a rank of the world in a Comm.
type member struct {
	comm uint64
	rank int
}

// NewOffice makes the Office of a process.
func NewOffice(way Way) *Office {
	o := &Office{way: way, pid: uint64(os.Getpid()), boxes: map[int]*Box{}, lines: map[[2]int]*line{}, accounts: map[member]*Account{}, streams: map[*auth.Stream]*inlet{}}
	o.ctx, o.stop = context.WithCancel(context.Background())
	return o
}

// Accept takes the stream that another Office has dialed, of what its rank from sends to rank to, which
// lives here.
func (o *Office) Accept(s *auth.Stream, from, to int) {
	in := &inlet{office: o, from: from, to: to, box: o.box(to), stream: s, moving: map[uint64]*Receiving{}}
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

// bye closes an Account, which other ranks that this one has written to are told.
func (o *Office) bye(a *Account) {
	for _, l := range o.linesOf(a.self) {
		l.mu.Lock()
		switch {
		case l.box == nil && (l.stream != nil || l.dialing):
			l.put(outgoing{f: frame{kind: frameBye, path: Path{Comm: a.comm}}})
			l.mu.Unlock()
		case l.box != nil:
			l.mu.Unlock()
			o.left(member{a.comm, l.to}, a.self)
		default:
			l.mu.Unlock()
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.accounts[member{a.comm, a.self}] == a {
		delete(o.accounts, member{a.comm, a.self})
	}
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
	return l.err
}

// closeTime is how long Close waits for what is being sent to be taken.
const closeTime = time.Second

// Close ends the Office. What has been sent is on its way, and ends well: a stream is closed once the
// other end has read it, or does not.
func (o *Office) Close() {
	until := time.Now().Add(closeTime)
	wait := backoff.Sleep{First: 50 * time.Microsecond, Most: 5 * time.Millisecond}
	for !o.written() && time.Now().Before(until) {
		wait.Next()
	}
	o.stop()
	o.mu.Lock()
	o.closed = true
	streams := o.streams
	o.streams = map[*auth.Stream]*inlet{}
	o.mu.Unlock()
	for s := range streams {
		_ = s.SetReadDeadline(until) // what the other end still says is read, or it might lose what it has not read
		_ = s.CloseWrite()
	}
	o.starts.Lock()
	o.ending = true
	o.starts.Unlock()
	over := make(chan struct{})
	go func() {
		o.running.Wait()
		close(over)
	}()
	timer := time.NewTimer(max(time.Until(until), 0))
	defer timer.Stop()
	select {
	case <-over:
	case <-timer.C:
		for s := range streams {
			s.Close()
		}
		<-over
	}
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
		busy := l.stream != nil && (l.writing || len(l.queue) > 0)
		l.mu.Unlock()
		if busy {
			return false
		}
	}
	return true
}
