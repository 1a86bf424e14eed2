package plane

import (
	"time"

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
