package boot

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/lobby"
)

// How Spawn starts ranks again: see Command.Restart. A rank that is started again is a newcomer,
// which waits in the hall, at Spawn, until the job takes it in. Only a process that has been a rank
// of the job keeps the job alive: where the last of these has ended, newcomers hear that it is
// over.

// tempo is how Spawn starts ranks again.
type tempo struct {
	// before the second time in a row, the first comes at once; twice as long each time, up to most
	first, most time.Duration
	row         time.Duration // a process that has run for so long begins a new row
}

var usualTempo = tempo{first: time.Second, most: time.Minute, row: time.Minute}

// restarts is what Spawn knows of ranks that it starts again.
type restarts struct {
	most  int // in a row
	tempo tempo
	grace time.Duration // what processes have to end
	hall  *Hall         // nil: nobody is started again, or comes late
	due   chan int      // ranks to be started
	slots []slot        // by rank
	over  bool          // the job has ended: nobody is started any more
	count int           // so many have been started again
}

// slot is the place of one rank, in which one process runs after the other.
type slot struct {
	id     string // of a newcomer; "" for the first process
	starts int
	row    int // how many of them in a row
	since  time.Time
	timer  *time.Timer // of the next start
}

// newRestarts opens the hall, if c wants one: ranks find it by what is added to its environment.
func newRestarts(c *Command, p tempo) (*restarts, error) {
	r := &restarts{most: c.Restart, tempo: p, grace: c.Grace, due: make(chan int, c.N), slots: make([]slot, c.N)}
	if c.Restart == 0 && c.Hall == "" {
		return r, nil
	}
	for i := range r.slots {
		r.slots[i].since = time.Now()
	}
	getenv := environ.Of(c.Env)
	hall, err := ofJob(nil, c.Env)
	if err != nil {
		return nil, err
	}
	if c.Hall != "" {
		if r.hall, err = listenHall(getenv, c.Hall, hall); err != nil {
			return nil, err
		}
	} else {
		l, err := listenHere(getenv, "127.0.0.1:0", "[::1]:0")
		if err != nil {
			return nil, cannotListen(err, "no free port")
		}
		r.hall = serveHall(l, hall, newMemoryStore())
	}
	place := r.hall.Addr()
	if host, port, _ := net.SplitHostPort(place); net.ParseIP(host).IsUnspecified() {
		place = net.JoinHostPort("127.0.0.1", port)
	}
	c.Env = append(c.Env[:len(c.Env):len(c.Env)], environ.Hall.Set(place))
	return r, nil
}

// close ends what is still to come.
func (r *restarts) close() {
	if r.hall == nil {
		return
	}
	r.end()
	r.hall.drain(r.grace) // processes that were started by hand are to hear it, too
	r.hall.Close()
}

// end tells newcomers that the job is over, and starts no more.
func (r *restarts) end() {
	if r.over || r.hall == nil {
		return
	}
	r.over = true
	for i := range r.slots {
		if t := r.slots[i].timer; t != nil {
			t.Stop()
		}
	}
	r.hall.Set(context.Background(), lobby.Over, nil)
}

// belongs reports whether the process in the place of that rank has been a rank of the job.
func (r *restarts) belongs(rank int) bool {
	id := r.slots[rank].id
	return id == "" || r.hall.has(lobby.Taken(id))
}

// id is the newcomer in the place of rank.
func (r *restarts) id(rank int) string { return r.slots[rank].id }

// idle reports whether the job is over, and those that are alive have never been ranks of it: they have no more to do.
func (r *restarts) idle(alive func(rank int) bool) bool { return r.over && !r.left(alive) }

// left reports whether one of those that are alive has been a rank of the job.
func (r *restarts) left(alive func(rank int) bool) bool {
	for rank := range r.slots {
		if alive(rank) && r.belongs(rank) {
			return true
		}
	}
	return false
}

// ended is called when the process in the place of that rank has ended, by x, which is nil where it
// has ended well. alive are those that have not. say tells people.
func (r *restarts) ended(rank int, x *ExitError, alive func(rank int) bool, say func(format string, args ...any)) {
	if r.hall == nil {
		return
	}
	s := &r.slots[rank]
	if s.id != "" {
		r.hall.Set(context.Background(), lobby.Gone(s.id), nil)
	}
	if !r.left(alive) {
		r.end()
	}
	if x == nil || r.over || r.most == 0 {
		return
	}
	if time.Since(s.since) >= r.tempo.row {
		s.row = 0
	}
	if s.row >= r.most {
		say("%v; it has been started %d times in a row, and is given up", x, s.row+1)
		return
	}
	wait, when := time.Duration(0), "at once"
	if s.row > 0 {
		wait = min(r.tempo.first<<min(s.row-1, 30), r.tempo.most)
		when = fmt.Sprintf("in %v", wait)
	}
	s.row++
	say("%v; it is started again %s, %d of %d times in a row", x, when, s.row, r.most)
	s.timer = time.AfterFunc(wait, func() { r.due <- rank })
}

// next makes the process that is to be started in the place of rank a newcomer. It is false if the
// job has ended meanwhile.
func (r *restarts) next(rank int) bool {
	if r.over {
		return false
	}
	s := &r.slots[rank]
	s.starts++
	s.id, s.since = fmt.Sprintf("%d.%d", rank, s.starts), time.Now()
	r.count++
	return true
}
