//go:build fault

package chaos

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// A corner is a case of TestR6Corners: a world of ranks with many Comms, each used by a goroutine of its own, most of
// them on parts of one slice that the ranks share; and one sort of trouble.
type corner struct {
	seed      uint64
	sort      sort
	n, hosts  int // hosts 0: one
	processes bool
	comms     []party
	victim    int           // the rank that does wrong, or has it done to it
	delay     time.Duration // from the moment when all have their Comms
	point     string        // of package inject
	hit       int
	action    string
	peer      time.Duration // Options.PeerTimeout
	pause     time.Duration // how long ranks are stopped
}

// A party is one of the Comms.
type party struct {
	members []int // of the world
	calls   []call
	idle    bool   // makes no call, and hears of its end by Done
	fails   bool   // by what the corner does to it
	culprit int    // the member that does it
	way     closer // how, for closing
	shrink  bool   // the members go on with Shrink
}

// sort is what goes wrong.
type sort int

const (
	calm        sort = iota
	storm            // many Comms are aborted at once
	arenas           // one of the Comms on a shared slice fails, or a rank that shares it is killed
	closings         // a Comm is closed by another goroutine than the one that uses it
	descriptors      // a process has no descriptor left
	mappings         // it cannot map memory
	memory           // shared memory is refused
	wraps            // counters begin just below 2^32
	kills            // a process is killed at any point of package inject
	givenUp          // a process is stopped for longer than PeerTimeout, and comes back
	pauses           // all processes are stopped for longer than PeerTimeout
	strangers        // others connect to every socket of the job
	sorts
)

var sortNames = [sorts]string{"calm", "storm of aborts", "shared slice", "closings", "no descriptors", "no mappings", "no shared memory",
	"counters near 2^32", "kill", "given up", "pause of all", "strangers"}

func (s sort) String() string { return sortNames[s] }

// closer is how a Comm is closed under the goroutine that uses it.
type closer int

const (
	closeCalls     closer = iota // Close on another goroutine, while calls are made
	closeSplit                   // while Split waits
	closeShrink                  // while Shrink waits
	closeQueue                   // while queued calls are under way
	closeGroup                   // while a group is
	closeOnFailure               // by OnFailure, after an Abort
	abortSplit                   // Abort while Split waits
	closers
)

var closerNames = [closers]string{"Close", "Close in Split", "Close in Shrink", "Close over a Queue", "Close over a Group", "Close in OnFailure", "Abort in Split"}

func (c closer) String() string { return closerNames[c] }

// points are all points of package inject at which a process may be killed; TestCornerPoints
// compares them with the sources.
var points = []string{"cpu.call", "cpu.close", "cpu.log", "cpu.post", "cpu.read", "cpu.split", "cpu.step", "cpu.touch", "cpu.touched", "cpu.write",
	"join.host", "join.verdict", "shrink.decide", "shrink.decided", "shrink.done", "shrink.propose", "shrink.ready"}

// newCorner is the case of that seed.
func newCorner(seed uint64) *corner {
	rnd := rand.New(rand.NewPCG(seed, 0x636f726e6572))
	k := &corner{seed: seed, sort: sort(seed % uint64(sorts)), n: 2 + rnd.IntN(4), processes: true, peer: 10 * time.Second}
	switch k.sort {
	case calm, storm, arenas, closings, wraps:
		k.processes = rnd.IntN(3) != 0
	}
	if rnd.IntN(3) == 0 && k.sort != arenas {
		k.hosts = 1 + rnd.IntN(k.n)
	}
	k.victim, k.delay = rnd.IntN(k.n), time.Duration(rnd.IntN(20_000))*time.Microsecond
	k.addParties(rnd)
	switch k.sort {
	case storm:
		for i := range k.comms {
			k.fail(rnd, i, rnd.IntN(8) != 0)
		}
	case arenas, closings:
		k.fail(rnd, 0, true)
		k.comms[0].way = closer(rnd.IntN(int(closers)))
		if k.sort == arenas && k.processes && rnd.IntN(2) == 0 {
			k.comms[0].fails = false
			k.point, k.hit, k.action = "cpu.call", 1+rnd.IntN(10*len(k.comms)), "kill"
		}
	case mappings:
		k.point, k.hit, k.action = "cpu.map", 1+rnd.IntN(8), "cut"
	case memory:
		k.point, k.hit, k.action = "cpu.reserve", 1+rnd.IntN(8), "cut"
	case kills:
		k.point, k.hit, k.action = points[rnd.IntN(len(points))], 1+rnd.IntN(12), "kill"
		switch prefix, _, _ := strings.Cut(k.point, "."); {
		case k.point == "cpu.call" || k.point == "cpu.post" || k.point == "cpu.read" || k.point == "cpu.step" || k.point == "cpu.touch" || k.point == "cpu.touched" || k.point == "cpu.write":
			k.hit = 1 + rnd.IntN(100)
		case prefix == "join":
			k.hit = 1 + rnd.IntN(2)
		case prefix == "shrink": // which needs an occasion
			k.hit = 1 + rnd.IntN(2)
			k.fail(rnd, 0, true)
			k.comms[0].shrink = true
		}
	case givenUp:
		k.peer, k.pause = time.Second, 3*time.Second
		k.point, k.hit, k.action = "cpu.call", 1+rnd.IntN(10*len(k.comms)), fmt.Sprintf("stop:%v", k.pause)
	case strangers: // have time while ranks wait for each other at their sockets
		k.point, k.hit, k.action = "join.host", 1, fmt.Sprintf("delay:%v", 10*k.delay)
	case pauses:
		k.peer, k.pause = time.Second, 2500*time.Millisecond
	case wraps: // every Comm makes more calls than are left up to 0
		k.point, k.hit, k.action = "cpu.counters", 1, fmt.Sprintf("from:%d", math.MaxUint32-rnd.IntN(fewestCalls))
	}
	return k
}

// fewestCalls is how many calls a Comm makes at least, where it is not one of very many.
const fewestCalls = 10

// addParties chooses the Comms. The first has all ranks.
func (k *corner) addParties(rnd *rand.Rand) {
	n, calls := 2+rnd.IntN(6), fewestCalls+rnd.IntN(20)
	switch {
	case k.sort == storm && rnd.IntN(4) == 0: // more at once than a host's log has places
		n, calls = 70+rnd.IntN(40), 3
	case k.sort == storm:
		n = 10 + rnd.IntN(20)
	}
	for i := range n {
		p := party{calls: make([]call, calls), culprit: -1, shrink: rnd.IntN(3) == 0}
		for r := range k.n {
			if i == 0 || n > 40 || rnd.IntN(3) != 0 {
				p.members = append(p.members, r)
			}
		}
		if len(p.members) < 2 {
			p.members = []int{0, 1}
		}
		for j := range p.calls {
			p.calls[j] = newCall(rnd, len(p.members))
			p.calls[j].count %= 20_000 // many Comms at once on few cores
		}
		k.comms = append(k.comms, p)
	}
}

// fail makes Comm i one that fails, by a member's doing.
func (k *corner) fail(rnd *rand.Rand, i int, fails bool) {
	p := &k.comms[i]
	p.fails, p.culprit, p.idle = fails, p.members[rnd.IntN(len(p.members))], k.sort == storm && rnd.IntN(2) == 0
}

func (k *corner) String() string {
	where := "goroutines"
	if k.processes {
		where = "processes"
	}
	text := fmt.Sprintf("seed %d: %v, %d ranks as %s, %d hosts, %d Comms", k.seed, k.sort, k.n, where, max(k.hosts, 1), len(k.comms))
	if k.sort == closings {
		text += fmt.Sprintf(", %v by rank %d", k.comms[0].way, k.comms[0].culprit)
	}
	if k.sort == wraps {
		return text + ", " + k.action
	}
	if k.point != "" {
		return text + fmt.Sprintf(", %s of rank %d at %s, pass %d", k.action, k.victim, k.point, k.hit)
	}
	return text + fmt.Sprintf(", rank %d, after %v", k.victim, k.delay)
}

func (k *corner) job() job {
	j := job{n: k.n, hosts: k.hosts, processes: k.processes, test: "TestCornerRank", env: []string{fmt.Sprintf("CHAOS_CORNER=%d", k.seed)}}
	plan := ""
	if k.point != "" {
		plan = fmt.Sprintf("%d@%s:%d:%s", k.victim, k.point, k.hit, k.action)
	}
	if k.sort == wraps { // on all ranks
		plan = fmt.Sprintf("%s:%d:%s", k.point, k.hit, k.action)
	}
	j.env = append(j.env, "GOCCL_FAULT="+plan)
	if k.sort == strangers {
		j.beside = k.attack
	}
	return j
}

// has reports whether rank r of the world is in the Comm.
func (p *party) has(r int) bool { return slices.Contains(p.members, r) }
