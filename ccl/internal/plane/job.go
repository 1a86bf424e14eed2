package plane

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/simhost"
)

// Job is what the ranks of one job that live in this process have in common.
type Job struct {
	id   string
	peer time.Duration // Options.PeerTimeout of the first Comm
	Time timing        // how time passes
	Net  network       // how other hosts are reached
	Life lifetime      // how long the job lasts here

	Order    simhost.Mutex // of what is believed
	Statuses status.Table  // where all ranks stand
	watch    monitored     // what the monitor keeps

	mu     sync.Mutex // guards what follows
	World  gone.State // which ranks of the world have gone, and what is decided
	comms  comms
	sites  sites        // of this process
	early  []hostClosed // the last Comms that all ranks of another host have closed
	broken broken       // the first failure since the last report of where all ranks stood
}

// timing is how time passes in this process.
type timing struct {
	Coarse   Clock
	Lived    lived.Clock
	naps     proc.Napper
	Yielding yielding
}

// network is how other hosts are reached. It is set once, by the first rank that comes by.
type network struct {
	Addrs group.Book // by rank; empty on a single host
	TCP   *tcp.Node
	At    simhost.Host // nil: over the kernel's network
	iface string       // that it listens at

	Secret auth.Secret // the job's
	Post   *postal
}

// lifetime is how long the job lasts in this process.
type lifetime struct {
	here   atomic.Int32     // ranks in this process
	refs   int              // Comms and joining ranks, under jobs
	steps  map[string]*step // of joining, under Job.mu
	open   map[int]int      // by rank of the world: its Comms that are not being closed; under Job.mu
	stay   stay             // under Job.mu
	StopCh chan struct{}
	Wg     sync.WaitGroup
}

// stay is until when a failure keeps the ranks of this process in their job: how long, and since when.
type stay struct{ limit, since time.Duration }

// left is what is left of it, now being the time since the job began: never more than all of it, whatever clocks say.
func (s stay) left(now time.Duration) time.Duration { return s.limit - max(now-s.since, 0) }

// stayFor keeps the ranks of this process in their job for that long after a failure.
func (j *Job) stayFor(limit, since time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := (stay{limit, since}); limit > j.Life.stay.left(since) {
		j.Life.stay = s
	}
}

// partFrom counts out a Comm that rank w of the world closes. If it is the rank's last, it returns
// how long failures keep the rank in the job.
func (j *Job) partFrom(w int) (left time.Duration, last bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Life.open[w]--; j.Life.open[w] > 0 {
		return 0, false
	}
	delete(j.Life.open, w)
	return j.Life.stay.left(j.Time.Coarse.Exact()), true
}

// Site returns this process's part in host node.
func (j *Job) Site(node int) *Site {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sites.of(node)
	if s == nil {
		s = newSite(j, node)
		j.sites = append(j.sites[:len(j.sites):len(j.sites)], s) // a new list: others hold the old one
	}
	return s
}

// Sites lists the sites of this process: its parts in the hosts that it counts as on now.
func (j *Job) Sites() []*Site {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.sites
}

// jobs are the jobs this process takes part in: what a process has one of.
var jobs = struct {
	sync.Mutex
	m map[jobKey]*Job
}{m: map[jobKey]*Job{}}

// jobKey tells jobs apart. Several simulated processes may be in one job.
type jobKey struct {
	id string
	at simhost.Host
}

// Background is a context that never ends, of this process: see simhost.
func (j *Job) Background() context.Context { return simhost.With(context.Background(), j.Net.At) }

// Hold adds a Comm to what keeps the job alive.
func (j *Job) Hold() {
	jobs.Lock()
	j.Life.refs++
	jobs.Unlock()
}

// TryHold is hold, unless the job has ended in this process.
func (j *Job) TryHold() bool {
	jobs.Lock()
	defer jobs.Unlock()
	if j.Life.refs == 0 {
		return false
	}
	j.Life.refs++
	return true
}

// isLastHold reports whether one Comm alone keeps the job alive in this process.
func (j *Job) isLastHold() bool {
	jobs.Lock()
	defer jobs.Unlock()
	return j.Life.refs == 1
}

// deadline returns a function that reports whether this process has lived for d since, or is about
// to leave its job, after which its time stands still. A wait for what other processes are to say
// ends so: what they said during a pause is read before it is over.
func (j *Job) deadline(d time.Duration) (over func() bool) {
	return deadlineBy(j.Time.Lived.Now, d, j.Life.StopCh)
}

// briefly is deadline in the time that Brief counts, for waits of less than a second.
func briefly(j *Job, d time.Duration) (over func() bool) {
	return deadlineBy(j.Time.Lived.Brief, d, j.Life.StopCh)
}

func deadlineBy(now func() time.Duration, d time.Duration, stop <-chan struct{}) (over func() bool) {
	until := now() + d
	return func() bool {
		select {
		case <-stop:
			return true
		default:
			return now() >= until
		}
	}
}

// await looks at each tick whether what is waited for has come, until that is so or the process has lived for d.
func await(j *Job, d time.Duration, come func() bool) {
	for over := j.deadline(d); !come() && !over(); {
		time.Sleep(tick)
	}
}

// AwaitLived waits until done is closed, at most until this process has lived for d. While it
// leaves j, which has limits of its own, its time stands still.
func AwaitLived(j *Job, d time.Duration, done <-chan struct{}) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for until := j.Time.Lived.Now() + d; j.Time.Lived.Now() < until; {
		select {
		case <-done:
			return
		case <-t.C:
		}
	}
}

// Ended is what package proc calls when the process that this one watches has ended: the monitor looks at once.
func (j *Job) Ended() { j.Time.Coarse.WakeMonitor() }

// Clock is the coarse time since the job began, in nanoseconds.
func (j *Job) Clock() int64 { return j.Time.Coarse.Now() }

// Silence is how long another process or host is silent when it is lost; 0: for ever.
func (j *Job) Silence() time.Duration { return j.peer }

// newPostal is the mail of a process, which nobody can reach yet.
func newPostal(j *Job) *postal {
	p := &postal{job: j}
	p.Office = mail.NewOffice(p.job.Background(), p)
	return p
}
