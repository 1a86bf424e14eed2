package plane

import (
	"fmt"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/simhost"
)

const (
	tick      = 5 * time.Millisecond
	BeatEvery = 250 * time.Millisecond
)

// monitored is what the monitor keeps from one look to the next.
type monitored struct {
	members []*Member // so that it allocates nothing
	circles circles
}

// monitor is the one goroutine that keeps the coarse clock, reads what other processes have to say, and looks
// after calls that wait. While there is nothing to look after it is idle: see pace.
func (j *Job) monitor() {
	defer j.Life.Wg.Done()
	quick := j.quickTick()
	t := time.NewTimer(quick)
	defer t.Stop()
	active := time.Now()
	due := active.Add(quick)
	var beaten time.Time
	for {
		rung := false
		select {
		case <-j.Life.StopCh:
			return
		case <-j.Time.Coarse.Woken():
			rung = true
		case <-t.C:
		}
		proc.HaltFork()
		simhost.Live(j.Net.At)
		now := time.Now()
		if j.Time.Coarse.Look() {
			active = now
		}
		j.Time.Lived.Lap(now) // first: who finds a call late by the clock asks what of that was lived through
		at := j.Time.Coarse.Stamp(now, now.Sub(active) >= probeAfter)
		// A tick that comes a little before its time is not to put off the beat by a whole one.
		beats := now.Sub(beaten) >= BeatEvery-tick
		if beats {
			beaten = now
		}
		for _, s := range j.Sites() {
			s.Here.showSleep(naps)
			s.checkPulses(beats)
			s.Scan()
			s.Here.appendKept()
			s.readBoard()
			s.expireProposals()
			s.reconsider()
			if beats {
				s.near.beat()
				s.leavers.settle()
				completeExits(s)
				reapEnded(s)
			}
		}
		waits, presses := j.checkMembers(at)
		for _, s := range j.Sites() {
			presses = s.near.flush() || presses
		}
		j.reportSnapshot(at)
		if beats {
			j.findCircle()
		}
		if waits || presses {
			active = now
		}
		next := quick
		if !rung {
			next = spaced(quick, now.Sub(due), min(restMost(j), j.idleTick()))
		}
		switch {
		case now.Sub(active) >= idleAfter && j.rest(at, idles):
			next = j.idleTick()
		case next > napLong && (presses || !j.rest(at, dozes)):
			next = max(quick, napLong)
		}
		if next > tick {
			j.Time.Lived.SleepsFor(next)
		}
		due = time.Now().Add(next)
		t.Reset(next)
	}
}

// StartMonitor lets the monitor begin, and messages come, once all have their memory.
func (j *Job) StartMonitor() {
	for _, s := range j.Sites() {
		if s.Here.Ends.entrance != nil {
			s.Here.Ends.entrance.Shut()
		}
		s.Here.startSilence()
	}
	_, _ = j.Net.Post.Open()     // where it fails, the first message says why
	j.Time.Lived.Lap(time.Now()) // or a pause before its first look would go unnoticed
	j.Life.Wg.Add(1)
	go j.monitor()
}

// checkPulses looks for processes of this host that have died, and, if beats, for those
// that have been silent for PeerTimeout. It is the monitor's.
func (s *Site) checkPulses(beats bool) {
	type loss struct {
		local int
		why   error
	}
	var losses []loss
	var left []int
	s.Job.mu.Lock()
	if s.Here.processes.pulse == nil {
		s.Job.mu.Unlock()
		return
	}
	now := s.Job.Time.Lived.Now()
	var bar time.Duration
	if beats {
		s.Here.processes.pulse.beat.Add(1)
		bar = s.Here.silence()
	}
	for i := range s.Here.processes.others {
		o := &s.Here.processes.others[i]
		p := &s.Here.processes.pulses[o.local]
		switch {
		case o.gone:
		case p.left.Load() != 0:
			o.gone = true
			left = append(left, s.Here.ranksOf(s.Job.World.Topo.Rank(s.Here.Node, o.local))...)
		case p.death.Load()&proc.OwnerDied != 0:
			o.gone = true
			losses = append(losses, loss{o.local, errEnded})
		case beats:
			if b := p.beat.Load(); b != o.beat || s.Job.peer <= 0 {
				o.beats(b, now)
			} else if o.lost(p, s.Here.processes.pulse, now, bar) {
				o.gone = true
				losses = append(losses, loss{o.local, fmt.Errorf("its process has been silent for %v", bar)})
			}
		}
	}
	out := s.Here.isOutside() // looked at last: a process that has given this one up says so before it ends
	s.Here.processes.guarded = s.Here.guard()
	s.Job.mu.Unlock()
	if len(left)+len(losses) > 0 || out {
		s.Scan() // what they have said before they ended comes first
	}
	if out {
		believeOut(s)
	}
	if len(left) > 0 {
		s.Job.markLeft(s.Here.Node, left)
	}
	for _, l := range losses {
		s.lostProcess(s.Job.World.Topo.Rank(s.Here.Node, l.local), l.why)
	}
}

// readBoard takes in what other processes of this host have told.
func (s *Site) readBoard() {
	s.Job.mu.Lock()
	h := s.Here.Host
	s.Job.mu.Unlock()
	if !h.Shared() || boardOf(h).status.Claimed() == s.Here.log.read {
		return
	}
	boardOf(h).status.Unread(&s.Here.log.read, s.Here.writesNoMore,
		func(st status.Status) { s.receiveStatus(&st, nil, false) })
}
