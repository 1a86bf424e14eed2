package watch

import (
	"errors"
	"fmt"
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
	sleep atomic.Uint32 // how its monitor sleeps, which is to be rung when there is something to read
	read  atomic.Uint64 // how far it has read the host's log
	pid   atomic.Uint64 // its number
	space atomic.Uint64 // and the namespace of that; 0: not known
	out   atomic.Uint32 // 1: the rank of this number is believed to be lost, see NoteOut
	_     [4]byte
	own   atomic.Uint64 // where its ledger of slices lies, 0 if it has none: see reap.go
	_     [8]byte
}

// Processes are those of this host. Job.Mu guards them.
type Processes struct {
	host    *Host
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

// show makes this process's pulse visible, and finds those of the others.
func (s *Processes) show(h *shm.Host) error {
	n, w := len(s.host.Procs), s.host.World
	mem, err := h.View(BoardOf(h).pulses.Load(), pulseBytes(n))
	if err != nil {
		return err
	}
	pulses := unsafe.Slice((*pulse)(unsafe.Pointer(&mem[0])), n)
	mine := &pulses[s.host.place()]
	mine.pid.Store(uint64(os.Getpid()))
	mine.space.Store(proc.Namespace())
	before := h.Slices().SetHome(BoardOf(h).number)
	h.Slices().ShowLedger(&mine.own)
	proc.MarkDeath(&mine.death)
	var others []watched
	for l, first := range s.host.Procs {
		if first == w.Topo.Rank(s.host.Node, l) && first != s.host.Mine {
			others = append(others, watched{local: l, since: s.host.Lived.Now()})
		}
	}
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	s.pulses, s.pulse, s.others = pulses, mine, others
	words := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[n*int(unsafe.Sizeof(pulse{}))])),
		n*(partedWords(n)+exitsEach))
	s.parted, s.exits, s.before = words[:n*partedWords(n)], words[n*partedWords(n):], before
	return nil
}

// StartSilence begins to count the silence of the others.
func (s *Processes) StartSilence() {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	if s.pulse == nil {
		return
	}
	s.pulse.beat.Add(1)
	for i := range s.others {
		s.others[i].since = s.host.Lived.Now()
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
// where a hundred processes and more share a processor, what a live one may need. Job.Mu is held.
func (s *Processes) silence() time.Duration {
	peer, h := *s.host.Peer, s.host.Host
	if h == nil {
		return peer
	}
	return max(peer, time.Duration(s.Count())*turns/time.Duration(max(h.Processors(), 1))).Truncate(time.Millisecond)
}

// Silence is that.
func (s *Processes) Silence() time.Duration {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.silence()
}

// Count is how many processes of this job are on the host, as far as they share memory. Job.Mu is held.
func (s *Processes) Count() int { return 1 + len(s.others) }

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

// ErrEnded is why a rank is lost whose process was seen to end, and will send nothing more. A loss
// with ErrEnded alone as its cause is certain: see Lost of plane.Site.
var ErrEnded = errors.New("its process ended")

// Loss is a process of this host that is lost.
type Loss struct {
	First int // its lowest rank
	Why   error
}

// Look looks for processes of this host that have died, and, if beats, for those that have been
// silent for PeerTimeout. It returns the ranks that have left, the processes that are lost, and
// whether the others believe a rank of this process to be lost. It is the monitor's.
func (s *Processes) Look(beats bool) (left []int, losses []Loss, out bool) {
	j := s.host.Job
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if s.pulse == nil {
		return nil, nil, false
	}
	now := j.Lived.Now()
	var bar time.Duration
	if beats {
		s.pulse.beat.Add(1)
		bar = s.silence()
	}
	for i := range s.others {
		o := &s.others[i]
		p, first := &s.pulses[o.local], j.World.Topo.Rank(s.host.Node, o.local)
		switch {
		case o.gone:
		case p.left.Load() != 0:
			o.gone = true
			left = append(left, s.host.RanksOf(first)...)
		case p.death.Load()&proc.OwnerDied != 0:
			o.gone = true
			losses = append(losses, Loss{first, ErrEnded})
		case beats:
			if b := p.beat.Load(); b != o.beat || *j.Peer <= 0 {
				o.beats(b, now)
			} else if o.lost(p, s.pulse, now, bar) {
				o.gone = true
				losses = append(losses, Loss{first, fmt.Errorf("its process has been silent for %v", bar)})
			}
		}
	}
	out = s.isOutside() // looked at last: a process that has given this one up says so before it ends
	s.guarded = s.guard()
	return left, losses, out
}

// GiveUp notes that the process whose lowest rank is first has gone, also where only its socket tells.
func (s *Processes) GiveUp(first int) {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	for i := range s.others {
		if o := &s.others[i]; s.host.World.Topo.Rank(s.host.Node, o.local) == first {
			o.gone = true
		}
	}
}

// Hide says that this process leaves in good order.
func (s *Processes) Hide() {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	if s.pulse != nil {
		h := s.host.Host
		s.pulse.left.Store(1)
		h.Slices().HideLedger(&s.pulse.own)
		h.Slices().LeaveHome(BoardOf(h).number, s.before)
		proc.UnmarkDeath(&s.pulse.death)
		s.pulse, s.pulses, s.others, s.parted, s.exits = nil, nil, nil, nil, nil
	}
}

// NoteOut shows the process of rank w of the world, if it is one of this host, that w is believed
// to be lost. The log of the host says so, too, but is not kept for a process that nobody waits for
// any more: one that was stopped for long finds later events there.
func (s *Processes) NoteOut(w int) {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	if topo := s.host.World.Topo; s.pulses != nil && w >= 0 && w < topo.Size() && topo.Node(w) == s.host.Node {
		s.pulses[topo.Local(w)].out.Store(1)
	}
}

// isOutside reports whether a rank of this process is believed to be lost, and this process has not
// heard of it. Job.Mu is held.
func (s *Processes) isOutside() bool { return len(s.outside()) > 0 }

// outside are the ranks of this process that are so. Job.Mu is held.
func (s *Processes) outside() (ranks []int) {
	if s.pulses == nil {
		return nil
	}
	w := s.host.World
	for l, first := range s.host.Procs {
		r := w.Topo.Rank(s.host.Node, l)
		if first == s.host.Mine && s.pulses[l].out.Load() != 0 && !w.Of(r).Lost {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Outside are the ranks of this process that the others believe to be lost, and this process has not heard of.
func (s *Processes) Outside() []int {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.outside()
}

// HasLeft reports whether the process of rank w of the world, one of this host, says in its pulse
// that it has left the job. Job.Mu is held.
func (s *Processes) HasLeft(w int) bool {
	topo := s.host.World.Topo
	return s.pulses != nil && s.pulses[topo.Local(s.host.Procs[topo.Local(w)])].left.Load() != 0
}

// KernelTells reports whether the kernel raises a flag when this process ends, or that whose lowest
// rank is the l-th of this host: then the two need no connection to notice each other's end.
func (s *Processes) KernelTells(l int) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.pulse.death.Load() != 0 && s.pulses[l].death.Load() != 0
}
