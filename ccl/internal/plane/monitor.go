package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/simhost"
)

const (
	tick      = 5 * time.Millisecond
	BeatEvery = watch.BeatEvery
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
			s.Here.Processes.ShowSleep(watch.Naps)
			s.checkPulses(beats)
			s.Scan()
			s.Here.Log.AppendKept()
			s.Here.Log.ReadBoard(func(st status.Status) { s.receiveStatus(&st, nil, false) })
			s.expireProposals()
			s.reconsider()
			if beats {
				s.Near.Beat()
				s.Here.Leavers.Settle()
				s.Here.Leavers.CompleteExits()
				s.reapEnded(false)
			}
		}
		waits, presses := j.checkMembers(at)
		for _, s := range j.Sites() {
			presses = s.Near.Flush() || presses
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
			next = spaced(quick, now.Sub(due), min(restMost(j), watch.IdleTick(j.peer)))
		}
		switch {
		case now.Sub(active) >= idleAfter && j.rest(at, watch.Idles):
			next = watch.IdleTick(j.peer)
		case next > napLong && (presses || !j.rest(at, watch.Dozes)):
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
		if s.Here.Ends.Entrance != nil {
			s.Here.Ends.Entrance.Shut()
		}
		s.Here.Processes.StartSilence()
	}
	_, _ = j.Net.Post.Open()     // where it fails, the first message says why
	j.Time.Lived.Lap(time.Now()) // or a pause before its first look would go unnoticed
	j.Life.Wg.Add(1)
	go j.monitor()
}

// checkPulses looks for processes of this host that have ended, and, if beats, for those that are silent.
func (s *Site) checkPulses(beats bool) {
	left, losses, out := s.Here.Processes.Look(beats)
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
		s.LostProcess(l.First, l.Why)
	}
}
