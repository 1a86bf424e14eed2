package cpu

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/proc"
)

const (
	tick      = 5 * time.Millisecond
	beatEvery = 250 * time.Millisecond
)

// monitor is the one goroutine that keeps the coarse clock, reads what other processes have to say, and looks
// after calls that wait. While there is nothing to look after it is idle: see pace.
func (j *job) monitor() {
	defer j.wg.Done()
	quick := j.quickTick()
	t := time.NewTimer(quick)
	defer t.Stop()
	stirred := time.Now()
	var beaten time.Time
	for {
		select {
		case <-j.stopCh:
			return
		case <-j.pace.wake:
		case <-t.C:
		}
		proc.HaltFork()
		now := time.Now()
		j.pace.idle.Store(false)
		if j.pace.stirred.Swap(false) {
			stirred = now
		}
		at := j.stamp(now, now.Sub(stirred) >= probeAfter)
		j.lived.lap(now)
		// A tick that comes a little before its time is not to put off the beat by a whole one.
		beats := now.Sub(beaten) >= beatEvery-tick
		if beats {
			beaten = now
		}
		for _, s := range j.parts() {
			s.wakeful()
			s.feel(beats)
			s.scan()
			s.catchUp()
			s.readBoard()
			s.insist()
			s.reconsider()
			if beats {
				s.beat()
			}
		}
		waits := j.lookAt(at)
		for _, s := range j.parts() {
			waits = s.flush() || waits
		}
		j.develop(at)
		if beats {
			j.findCircle()
		}
		if waits {
			stirred = now
		}
		next := quick
		if now.Sub(stirred) >= idleAfter && j.settleDown(at) {
			next = j.idleTick()
		}
		if next > tick {
			j.lived.linger(next)
		}
		t.Reset(next)
	}
}
