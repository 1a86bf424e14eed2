package plane

import "time"

// While calls are made, or wait, or something is to be decided, the monitor looks around each tick.
// When there has been nothing of that for idleAfter it is idle: it sleeps for watch.IdleTick at a time,
// and is woken by what comes first of a call that begins or waits, an event or status that a
// process of this host writes (a datagram to the ringer of each process that says in its pulse that
// it is idle), the death of the next process of this host in a circle (see guard), and an event
// from another host.
//
// From probeAfter on without a call the coarse clock says that it is late as well: a call that
// begins clears that, which tells the monitor that calls are made, and costs the others a look at
// one bit.
const (
	probeAfter = 50 * time.Millisecond
	idleAfter  = 100 * time.Millisecond
)

// quickTick is how often the monitor looks around while it is not idle: all those of a host take at most a tenth
// or so of its processors.
func (j *Job) quickTick() time.Duration {
	quick := tick
	j.mu.Lock()
	defer j.mu.Unlock()
	for s, h := range j.sites.sharing() {
		quick = max(quick, time.Duration(s.Here.Processes.Count())*time.Second/time.Duration(2000*max(h.Processors(),
			1)))
	}
	return quick
}

// spaced is for how long a monitor sleeps that looks around so quickly, and got its turn so late:
// so long that those that wait for a turn take at most a tenth of the processors, as quickTick
// means it to be. That does not know of processes that share them and count as on other hosts, or
// are of another job.
func spaced(quick, late, most time.Duration) time.Duration { return max(quick, min(9*late, most)) }

// restMost is how long a monitor dozes that gets its turn late, and how long a rank sleeps until
// something arrives from other hosts. Events may pass one host after the other, so the time is
// short unless the job has hundreds of ranks: where these share a few processors, their looks would
// take all of them.
func restMost(j *Job) time.Duration {
	return min(max(napLong, time.Duration(j.World.Topo.Size())*tick/25), 5*napLong)
}

// napLong is how long the monitor sleeps where nobody would wake it for the report of a failure, or
// something is to be decided: the end of a process of the same host is told within 50 ms. Only one
// that many share a processor with naps for longer.
const napLong = 8 * tick

// rest has the monitor doze or be idle, if nothing needs it and whatever may need it is able to wake it.
func (j *Job) rest(at int64, how uint32) bool {
	j.mu.Lock()
	undecided := j.broken.at != 0 || !j.World.Events.IsIdle()
	j.mu.Unlock()
	for _, s := range j.Sites() {
		undecided = undecided || s.proposals.Any()
	}
	if undecided {
		return false
	}
	for _, s := range j.Sites() {
		if !s.Here.CanIdle() {
			return false
		}
	}
	// Each of these says how it sleeps before it looks once more; a process that has something to say says so
	// before it looks which sleep.
	j.Time.Coarse.Sleep(at, how)
	for _, s := range j.Sites() {
		s.Here.Processes.ShowSleep(how)
	}
	for _, s := range j.Sites() {
		if s.Here.Log.HasUnread(how) {
			j.Time.Coarse.WakeMonitor()
		}
	}
	return j.Time.Coarse.Sleeps()
}
