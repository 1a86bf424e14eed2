package plane

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// pulse is what a process shows of its life to the others of its host.
type pulse struct {
	death atomic.Uint32 // see proc.MarkDeath
	beat  atomic.Uint32 // counts up
	left  atomic.Uint32 // 1: it has left the job in good order
	sleep atomic.Uint32 // how its monitor sleeps, which is to be rung when there is something to read: see Clock
	read  atomic.Uint64 // how far it has read the host's log
	pid   atomic.Uint64 // its number
	space atomic.Uint64 // and the namespace of that; 0: not known
	out   atomic.Uint32 // 1: the rank of this number is believed to be lost, see noteOut
	_     [4]byte
	own   atomic.Uint64 // where its ledger of slices lies, 0 if it has none: see reap.go
	_     [8]byte
}

// processes are those of this host. Job.mu guards them.
type processes struct {
	pulses  []pulse // by rank of the host; a process uses that of its lowest rank
	pulse   *pulse  // this process's
	others  []watched
	guarded bool // this process is told when the next of the others ends; the monitor's
	parted  []atomic.Uint64
	exits   []atomic.Uint64
	reaps   bool   // this process empties slices of others
	before  uint64 // the job to which this process's slices belonged before
}

// watched is another process of this host as the monitor sees it.
type watched struct {
	local int // the lowest of its ranks, among the ranks of the host
	beat  uint32
	since time.Duration // in lived time
	gone  bool

	// Of a process that has been silent for half of the limit: how its threads were at the last look,
	// in lived time, and how long it has been kept from running.
	threads proc.Threads
	looked  time.Duration
	starved time.Duration
}

// pulseBytes is the size of the table of pulses, one for each rank of a host, with what they say of
// each other behind it, and their pending exits; a process uses the places of its lowest rank.
func pulseBytes(n int) int {
	return n * (int(unsafe.Sizeof(pulse{})) + 8*partedWords(n) + 8*exitsEach)
}

// showPulse makes this process's pulse visible, and finds those of the others.
func (s *host) showPulse(h *shm.Host) error {
	n := len(s.Procs)
	mem, err := h.View(boardOf(h).pulses.Load(), pulseBytes(n))
	if err != nil {
		return err
	}
	pulses := unsafe.Slice((*pulse)(unsafe.Pointer(&mem[0])), n)
	mine := &pulses[s.Job.World.Topo.Local(s.Mine)]
	mine.pid.Store(uint64(os.Getpid()))
	mine.space.Store(proc.Namespace())
	before := h.Slices().SetHome(boardOf(h).number)
	h.Slices().ShowLedger(&mine.own)
	proc.MarkDeath(&mine.death)
	var others []watched
	for l, first := range s.Procs {
		if first == s.Job.World.Topo.Rank(s.Node, l) && first != s.Mine {
			others = append(others, watched{local: l, since: s.Job.Time.Lived.Now()})
		}
	}
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	s.processes.pulses, s.processes.pulse, s.processes.others = pulses, mine, others
	words := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[n*int(unsafe.Sizeof(pulse{}))])),
		n*(partedWords(n)+exitsEach))
	s.processes.parted, s.processes.exits, s.processes.before = words[:n*partedWords(n)], words[n*partedWords(n):], before
	return nil
}

// startSilence begins to count the silence of the others.
func (s *host) startSilence() {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	if s.processes.pulse == nil {
		return
	}
	s.processes.pulse.beat.Add(1)
	for i := range s.processes.others {
		s.processes.others[i].since = s.Job.Time.Lived.Now()
	}
}

// joiningFor is the least silence that makes a process lost which has never shown a pulse: they do
// not all get away from joining at the same time where they share few processors.
const joiningFor = 30 * time.Second

// turns is how long the processes of a host may take per process that shares a processor until each
// has shown its pulse, should all of them want to run: some ten turns of 4 ms, since a pulse takes
// a thread that wakes and one that it hands over to, and others of the process want turns too.
const turns = 40 * time.Millisecond

// silence is how long another process of this host is silent when it is lost: PeerTimeout, or,
// where a hundred processes and more share a processor, what a live one may need. Job.mu is held.
func (s *host) silence() time.Duration {
	if s.Host == nil {
		return s.Job.peer
	}
	return max(s.Job.peer, time.Duration(1+len(s.processes.others))*turns/time.Duration(max(s.Host.Processors(),
		1))).Truncate(time.Millisecond)
}

// threads are those of the process that p is of, as seen by the one that me is of; nil where that cannot know.
func (p *pulse) threads(me *pulse) proc.Threads {
	if s := p.space.Load(); s == 0 || s != me.space.Load() {
		return nil
	}
	return proc.ThreadsOf(int(p.pid.Load()))
}

// beats notes that o has beaten.
func (o *watched) beats(beat uint32, now time.Duration) {
	*o = watched{local: o.local, beat: beat, since: now}
}

// lost reports whether o, which has not beaten since, is lost by now; me is the pulse of the
// process that asks. What a live process waits for a processor is no silence of its own. One that
// is stopped, or hangs, does not wait for a processor. From half of bar on the kernel is asked at
// each beat.
func (o *watched) lost(p, me *pulse, now, bar time.Duration) bool {
	if o.beat == 0 {
		bar = max(bar, joiningFor)
	}
	if now-o.since > bar/2 {
		t := p.threads(me)
		if o.threads != nil {
			o.starved += t.Starved(o.threads, now-o.looked)
		}
		o.threads, o.looked = t, now
	}
	return now-o.since-o.starved > bar
}

// hidePulse says that this process leaves in good order.
func (s *host) hidePulse() {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	if s.processes.pulse != nil {
		s.processes.pulse.left.Store(1)
		s.Host.Slices().HideLedger(&s.processes.pulse.own)
		s.Host.Slices().LeaveHome(boardOf(s.Host).number, s.processes.before)
		proc.UnmarkDeath(&s.processes.pulse.death)
		s.processes.pulse, s.processes.pulses, s.processes.others, s.processes.parted, s.processes.exits = nil, nil, nil,
			nil, nil
	}
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
	out := s.Here.isOutside() // looked at last: who has given this process up says so before it ends
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

// noteOut shows the process of rank w of the world, if it is one of this host, that w is believed
// to be lost. The log of the host says so, too, but is not kept for a process that nobody waits for
// any more: one that was stopped for long finds later events there. Job.mu is held.
func (s *host) noteOut(w int) {
	if topo := s.Job.World.Topo; s.processes.pulses != nil && w >= 0 && w < topo.Size() && topo.Node(w) == s.Node {
		s.processes.pulses[topo.Local(w)].out.Store(1)
	}
}

// isOutside reports whether a rank of this process is believed to be lost, and this process has not
// heard of it. Job.mu is held.
func (s *host) isOutside() bool {
	if s.processes.pulses == nil {
		return false
	}
	for l, first := range s.Procs {
		if first == s.Mine && s.processes.pulses[l].out.Load() != 0 && !s.Job.World.dead[s.Job.World.Topo.Rank(s.Node, l)] {
			return true
		}
	}
	return false
}

// believeOut has s believe of the ranks of its process what the others do, where the log does not say it any more.
func believeOut(s *Site) {
	for _, w := range s.Here.ranksOf(s.Here.Mine) {
		s.Job.mu.Lock()
		p := s.Here.processes.pulses
		out := p != nil && p[s.Job.World.Topo.Local(w)].out.Load() != 0 && !s.Job.World.dead[w]
		s.Job.mu.Unlock()
		if out {
			e := event.New(0, call.RankLost, w, w, s.Here.Node, errors.New("its process was silent"))
			s.Job.Order.Lock()
			s.deliver(&e)
			s.Job.Order.Unlock()
		}
	}
}

// lostProcess reports the ranks of the process whose lowest rank is first, unless the others have
// given up all ranks of this one: they may have come to their end without it.
func (s *Site) lostProcess(first int, why error) {
	s.Job.mu.Lock()
	for i := range s.Here.processes.others { // also where only its socket tells
		if o := &s.Here.processes.others[i]; s.Job.World.Topo.Rank(s.Here.Node, o.local) == first {
			o.gone = true
		}
	}
	s.Job.mu.Unlock()
	CatchUp(s)
	if !slices.ContainsFunc(s.Here.ranksOf(s.Here.Mine), func(w int) bool { return !s.Job.IsLost(w) }) {
		return
	}
	for _, w := range s.Here.ranksOf(first) {
		s.Lost(w, why)
	}
}

// ranksOf lists the ranks of the world in the process of this host whose lowest rank is first.
func (s *host) ranksOf(first int) []int {
	var ranks []int
	for l, p := range s.Procs {
		if p == first {
			ranks = append(ranks, s.Job.World.Topo.Rank(s.Node, l))
		}
	}
	return ranks
}

// KernelTells reports whether the kernel raises a flag when this process ends, or that whose lowest
// rank is the l-th of this host: then the two need no connection to notice each other's end.
func (s *host) KernelTells(l int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.processes.pulse.death.Load() != 0 && s.processes.pulses[l].death.Load() != 0
}

// Silence is how long another process or host is silent when it is lost; 0: for ever.
func (j *Job) Silence() time.Duration { return j.peer }
