package plane

import (
	"net/netip"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/simhost"
)

// EnterJob is EnterJobAt in this process.
func EnterJob(id string, peer time.Duration) *Job { return EnterJobAt(nil, id, peer) }

// EnterJobAt returns the job of that id, of the process of h, which may be nil, with one more rank
// in it. Silence of peer, at least watch.LeastSilence if there is a limit at all, makes a process or a
// host lost.
func EnterJobAt(h simhost.Host, id string, peer time.Duration) *Job {
	jobs.Lock()
	defer jobs.Unlock()
	j := jobs.m[jobKey{id, h}]
	if j == nil {
		if peer > 0 {
			peer = max(peer, watch.LeastSilence)
		}
		j = &Job{id: id, peer: peer, comms: comms{}}
		j.Net.At = h
		j.Life.StopCh, j.Life.steps, j.Net.Post = make(chan struct{}), map[string]*step{}, newPostal(j)
		j.Time.Coarse.Start()
		j.Time.Lived.Notice(watch.Trusted(peer))
		if h == nil {
			j.Time.naps.Open()
		}
		jobs.m[jobKey{id, h}] = j
	}
	j.Life.refs++
	j.Life.here.Add(1)
	return j
}

// Leave takes one away; the last ends the job in this process.
func (j *Job) Leave() {
	jobs.Lock()
	j.Life.refs--
	last := j.Life.refs == 0
	if last {
		delete(jobs.m, jobKey{j.id, j.Net.At})
	}
	jobs.Unlock()
	if last {
		j.close()
	}
}

func (j *Job) close() {
	if j.Net.Post != nil {
		j.Net.Post.close()
	}
	sites(j.Sites()).handOver()
	j.mu.Lock()
	j.World.Leaves = true
	j.mu.Unlock()
	for _, s := range j.Sites() {
		// What was kept is appended, as far as the others read on.
		for over := lived.For(2 * SettleFor); !s.Here.Log.AppendKept() && !over(); {
			s.Scan()
			time.Sleep(time.Millisecond)
		}
	}
	close(j.Life.StopCh)
	for _, s := range j.Sites() {
		s.reapEnded(true)
		s.Here.Leavers.GiveUp()
		s.Here.Processes.Hide()
		s.Here.SayBye()
		for _, c := range s.Near.All() {
			c.Bye()
		}
	}
	j.Life.Wg.Wait()
	for _, s := range j.Sites() {
		s.Here.CloseRinger()
		s.Here.Ends.Attending.Wait()
	}
	j.Time.naps.Close()
	if j.Net.TCP != nil {
		j.Net.TCP.Close()
	}
	for _, s := range j.Sites() {
		if s.Here.Host != nil {
			s.Here.Host.Close()
		}
	}
}

// add makes c known to the monitor. A failure that came before it did counts.
func (j *Job) add(c *Member) {
	j.mu.Lock()
	j.comms.add(c)
	if j.Life.open == nil {
		j.Life.open = map[int]int{}
	}
	j.Life.open[c.Group.World(c.Group.Rank())]++
	early := slices.Clone(j.early)
	history := j.World.Events.History()
	j.mu.Unlock()
	for _, h := range early {
		if h.comm == c.Group.ID() {
			c.Share.noteClosed(h.rank)
		}
	}
	for _, e := range history {
		if call.Code(e.Code) <= call.Closed {
			j.failMember(c, &e)
		}
	}
}

func (j *Job) Remove(c *Member) {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch last := j.comms.remove(c); {
	case last && j.broken.at != 0 && c.Fate.cause.Load() != nil: // where its ranks stood is to be reported
		j.broken.closed = append(j.broken.closed, c.Group.ID())
	case last:
		j.Statuses.Forget(c.Group.ID())
	}
	switch {
	case j.Net.TCP == nil:
	case c.Fate.cause.Load() == nil:
		j.Net.TCP.Forget(c.Group.ID(), uint32(c.Group.Rank()))
	default: // the others are to learn why, not that this one left
		j.Net.TCP.Fail(c.Group.ID(), uint32(c.Group.Rank()))
	}
}

// Listen begins to listen for other hosts at addr, which is that of an interface. secret is the
// job's, nil if it has none; wire is Options.Wire.
func (j *Job) Listen(iface string, addr netip.Addr, secret auth.Secret, wire auth.Wire) (err error) {
	j.Net.iface = iface
	if j.Net.TCP, err = tcp.ListenAt(j.Net.At, j.id, secret, wire, addr); err == nil {
		j.Net.TCP.Bear(max(j.peer, 0))
	}
	return err
}

// close ends the mail of this process, which leaves its job.
func (p *postal) close() {
	p.job.mu.Lock()
	doors := p.doors
	p.job.mu.Unlock()
	for _, d := range doors {
		d.socket.Close()
		d.strangers.Close()
	}
	p.Office.Close()
}
