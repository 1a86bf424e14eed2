package plane

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

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

// noteOut shows the process of rank w of the world, if it is one of this host, that w is believed
// to be lost. The log of the host says so, too, but is not kept for a process that nobody waits for
// any more: one that was stopped for long finds later events there.
func (s *host) noteOut(w int) {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
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
		w := s.Job.World.Topo.Rank(s.Node, l)
		if first == s.Mine && s.processes.pulses[l].out.Load() != 0 && !s.Job.World.Of(w).Lost {
			return true
		}
	}
	return false
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

// ReportWithin is how long the process of s waits for another process to report a failure. A
// process that is silent for longer is lost, which is reported itself, unless there is no such
// limit.
func ReportWithin(s *Site) time.Duration {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	limit := s.Here.silence()
	if s.Job.peer <= 0 {
		limit = max(limit, reportAfter)
	}
	return SoonFor + limit
}
