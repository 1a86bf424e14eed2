//go:build fault

package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/goccl/goccl/ccl"
)

// A scenario is one case of the test.
type scenario struct {
	seed      uint64
	n, hosts  int // hosts 0: one
	processes bool
	strict    bool
	rankOrder bool
	algo      string // GOCCL_ALGO
	calls     []call
	wrong     wrong
	victim    int
	at        int           // the call in which the victim does wrong
	delay     time.Duration // into it
	point     string        // or the point at which it does
	hit       int
	timeout   time.Duration // Options.Timeout
	peer      time.Duration // Options.PeerTimeout
}

// wrong is what goes wrong.
type wrong int

const (
	nothing wrong = iota
	kill
	exit
	panics
	stopShort
	stopLong
	cutTCP
	flip
	dropControl
	noMemory
	pauseShort
	pauseLong
	gcStorm
	skip
	repeat
	swap
	change
	cancel
	abort
	leave
	killInJoin
	killInShrink
	killInSplit
	killInClose
	wrongs
)

var wrongNames = [wrongs]string{"nothing", "kill", "exit", "panic", "short stop", "long stop", "cut", "flip", "drop control",
	"no memory", "short pause", "long pause", "gc storm", "skip", "repeat", "swap", "change", "cancel", "abort", "leave",
	"kill in NewComm", "kill in Shrink", "kill in Split", "kill in Close"}

func (w wrong) String() string { return wrongNames[w] }

// needsProcess says that what goes wrong is that of a whole process.
func (w wrong) needsProcess() bool {
	switch w {
	case kill, exit, panics, stopShort, stopLong, flip, cutTCP, dropControl, noMemory, killInJoin, killInShrink, killInSplit, killInClose:
		return true
	}
	return false
}

// ends says that the victim does not live on.
func (w wrong) ends() bool {
	switch w {
	case kill, exit, panics, killInJoin, killInShrink, killInSplit, killInClose:
		return true
	}
	return false
}

func (s *scenario) String() string {
	where := "goroutines"
	switch {
	case s.processes && s.hosts == 0:
		where = "shared memory"
	case s.hosts == s.n:
		where = "TCP"
	case s.hosts > 0:
		where = fmt.Sprintf("%d hosts", s.hosts)
	}
	text := fmt.Sprintf("seed %d: %d ranks, %s, %d calls, %v", s.seed, s.n, where, len(s.calls), s.wrong)
	if s.processes && s.hosts > 0 {
		text += ", processes"
	}
	if s.algo != "" {
		text += ", " + s.algo
	}
	if s.wrong == nothing {
		return text
	}
	text += fmt.Sprintf(" on rank %d", s.victim)
	if s.point != "" {
		return text + fmt.Sprintf(" at %s, pass %d", s.point, s.hit)
	}
	return text + fmt.Sprintf(" in call %d (%v) after %v", s.at, s.calls[s.at], s.delay)
}

// newScenario is the case of that seed.
func newScenario(seed uint64) *scenario {
	rnd := rand.New(rand.NewPCG(seed, 0x676f63636c))
	s := &scenario{seed: seed, n: 2 + rnd.IntN(7), timeout: 20 * time.Second, peer: 10 * time.Second}
	if *ranksFlag > 0 {
		s.n, s.timeout, s.peer = *ranksFlag, s.timeout*slower(), s.peer*slower()
	}
	switch rnd.IntN(5) {
	case 0:
	case 1: // a process may not have as many files open as the streams of hundreds of ranks are
		s.processes, s.hosts = s.n > 64, 1+rnd.IntN(s.n)
	case 2:
		s.processes = true
	case 3:
		s.processes, s.hosts = true, s.n
	case 4:
		s.processes, s.hosts = true, 1+rnd.IntN(s.n)
	}
	s.strict, s.rankOrder = rnd.IntN(6) == 0, rnd.IntN(6) == 0
	if s.hosts > 1 && rnd.IntN(3) == 0 {
		s.algo = [...]string{"allreduce=ring", "allreduce=doubling", "allreduce=dissemination", "allreduce=hier",
			"broadcast=scatter-ring", "reduce=scatter-ring", "allgather=ring", "gather=direct", "scatter=direct", "allreduce=hier-ring"}[rnd.IntN(10)]
	}
	for range 8 + rnd.IntN(24) {
		s.calls = append(s.calls, newCall(rnd, s.n))
	}
	s.victim, s.at = rnd.IntN(s.n), 1+rnd.IntN(len(s.calls)-3)
	s.delay = time.Duration(rnd.IntN(1500)) * time.Microsecond
	if rnd.IntN(4) != 0 {
		s.addFault(rnd)
	}
	return s
}

// addFault chooses what goes wrong.
func (s *scenario) addFault(rnd *rand.Rand) {
	for {
		s.wrong = wrong(1 + rnd.IntN(int(wrongs)-1))
		switch {
		case s.wrong.needsProcess() && !s.processes:
		case (s.wrong == cutTCP || s.wrong == flip || s.wrong == dropControl) && s.hosts < 2:
		case (s.wrong == stopLong || s.wrong == pauseLong) && rnd.IntN(4) != 0: // which take long
		case s.wrong == noMemory && s.hosts == s.n:
		default:
			s.place(rnd)
			return
		}
	}
}

// place chooses where.
func (s *scenario) place(rnd *rand.Rand) {
	s.hit = 1 + rnd.IntN(2*len(s.calls))
	points := []string{"cpu.call"}
	if s.hosts != s.n {
		points = append(points, "cpu.post")
	}
	if s.hosts > 1 {
		points = append(points, "cpu.step", "tcp.send")
	}
	pick := func(p ...string) { s.point = p[rnd.IntN(len(p))] }
	switch s.wrong {
	case kill, exit, panics, gcStorm:
		if s.processes {
			pick(points...)
		}
	case stopShort:
		pick(points...)
	case stopLong:
		pick(points...)
		s.peer = time.Second * slower()
	case pauseLong:
		s.timeout = time.Second
	case cutTCP:
		pick("tcp.send")
	case flip:
		pick("tcp.bytes")
	case dropControl:
		pick("control.send")
		s.hit = 1 + rnd.IntN(4)
	case noMemory:
		pick("cpu.reserve")
		s.hit = 1 + rnd.IntN(4)
	case skip, repeat, swap, change:
		// Point-to-point calls have an order of their own: they may pass others, or wait for them.
		for i := range s.calls {
			if s.calls[i].kind == ccl.KindSendRecv || s.calls[i].kind == ccl.KindBarrier {
				s.calls[i].kind = ccl.KindAllReduce
			}
		}
	case cancel:
		s.calls[s.at].queue = false // the end of a Wait's context ends the Wait alone
	case killInJoin:
		pick("join.host", "join.verdict")
		s.hit = 1 + rnd.IntN(2)
	case killInShrink:
		pick("shrink.propose", "shrink.ready", "shrink.decide", "shrink.decided", "shrink.done")
		s.hit = 1
	case killInSplit:
		pick("cpu.split")
		s.hit = 1
	case killInClose:
		pick("cpu.close")
		s.hit = 1
	}
}

// plan is the fault at a point, for package inject.
func (s *scenario) plan() string {
	if s.point == "" {
		return ""
	}
	action := map[wrong]string{exit: "exit", panics: "panic", gcStorm: "gc", stopShort: "stop:300ms", stopLong: "stop:3s",
		cutTCP: "cut", flip: "flip", dropControl: "drop", noMemory: "cut"}[s.wrong]
	if action == "" {
		action = "kill"
	}
	return fmt.Sprintf("%d@%s:%d:%s", s.victim, s.point, s.hit, action)
}

// callsOf is what rank r calls: the victim may do otherwise than the others.
func (s *scenario) callsOf(r int) []call {
	calls := append([]call(nil), s.calls...)
	if r != s.victim {
		return calls
	}
	switch s.wrong {
	case skip:
		return append(calls[:s.at], calls[s.at+1:]...)
	case repeat:
		return append(calls[:s.at+1], calls[s.at:]...)
	case swap:
		calls[s.at], calls[s.at+1] = calls[s.at+1], calls[s.at]
	case change:
		calls[s.at] = calls[s.at].changed(s.seed)
	}
	return calls
}

// sameAnyway reports whether the victim's calls are those of the others after all.
func (s *scenario) sameAnyway() bool {
	mine := s.callsOf(s.victim)
	if len(mine) != len(s.calls) {
		return false
	}
	for i := range mine {
		if !mine[i].looksLike(s.calls[i], s.n) {
			return false
		}
	}
	return true
}
