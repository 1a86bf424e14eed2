package campaign

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A plan is a job: all that its processes and its judge have to know. It follows from its name.
type plan struct {
	name  string
	seed  uint64
	ranks int // workers at the start
	// Seats number what may become a rank: the workers, then the spares, then the processes that come late.
	spares, late int
	process      []int // of each seat
	host         []int // of each seat
	env          []string
	strict       bool
	rankOrder    bool
	steps        []step
	bytes        int  // the most of a buffer
	far          bool // hosts are milliseconds apart, or stand still
}

// A step is one thing that the ranks do together.
type step struct {
	number int // among all steps of the seed
	kind   kind
	victim int // the process that is killed
}

// kind is what a step does.
type kind int

const (
	blocking kind = iota
	queued
	messages
	values
	refused
	parts
	several
	failing
	killing
	growing
	// The world alone has these: see widen.
	unread
	lagging
	waitsRound
	idle
	kindCount
)

var kindNames = [kindCount]string{"blocking", "queued", "messages", "values", "refused", "parts", "several", "failing", "killing", "growing",
	"unread", "lagging", "waits round", "idle"}

func (k kind) String() string { return kindNames[k] }

// limits of a job in seconds: of a call that nothing disturbs, and of the whole.
const (
	callLimit = 40 * time.Second
	jobLimit  = 90 * time.Second
)

// newPlan is the job of that name: a seed, and how it was made smaller.
func newPlan(name string) (*plan, error) {
	parts := strings.Split(name, "/")
	seed, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no job: it begins with a seed", name)
	}
	p := &plan{name: name, seed: seed, bytes: 1 << 20}
	rnd := rand.New(rand.NewPCG(seed, 0x63616d706169676e))
	p.ranks = 1 + rnd.IntN(9)
	p.place(rnd)
	p.wire(rnd)
	p.draw(rnd)
	for _, less := range parts[1:] {
		what, value, _ := strings.Cut(less, "=")
		switch what {
		case "keep":
			keep := strings.Split(value, ",")
			p.steps = slices.DeleteFunc(p.steps, func(s step) bool { return !slices.Contains(keep, strconv.Itoa(s.number)) })
		case "hosts":
			clear(p.host)
		case "goroutines":
			clear(p.process)
		case "plain":
			p.env, p.strict, p.rankOrder = nil, false, false
		case "bytes":
			if p.bytes, err = strconv.Atoi(value); err != nil || p.bytes < 256 {
				return nil, fmt.Errorf("%q: bytes=%s is no size", name, value)
			}
		default:
			return nil, fmt.Errorf("%q: there are keep=, hosts, goroutines, plain and bytes=, not %q", name, what)
		}
	}
	return p, nil
}

// place chooses processes and hosts: a process is on one host.
func (p *plan) place(rnd *rand.Rand) {
	way := rnd.IntN(4)
	switch {
	case way == 0: // goroutines of one process
	case way == 1 && p.ranks > 1: // processes of several ranks
		p.spread(rnd, 2+rnd.IntN(p.ranks-1))
	default:
		p.spread(rnd, p.ranks)
	}
	if p.processes() > 1 {
		p.spares, p.late = rnd.IntN(3)*rnd.IntN(2), rnd.IntN(3)*rnd.IntN(2)
	}
	p.process = append(p.process, make([]int, p.ranks-len(p.process))...)
	for range p.spares + p.late {
		p.process = append(p.process, slices.Max(p.process)+1)
	}
	// Goroutines of one process count as on several hosts too.
	hosts, turns := 1+rnd.IntN(3)*rnd.IntN(2), rnd.IntN(2) == 0
	unit := p.process
	if p.processes() == 1 {
		unit = make([]int, p.ranks)
		for r := range unit {
			unit[r] = r
		}
	}
	units := slices.Max(unit) + 1
	for _, u := range unit {
		if turns {
			p.host = append(p.host, u%hosts)
		} else {
			p.host = append(p.host, u*hosts/units)
		}
	}
}

func (p *plan) spread(rnd *rand.Rand, processes int) {
	turns := rnd.IntN(2) == 0
	for r := range p.ranks {
		if turns {
			p.process = append(p.process, r%processes)
		} else {
			p.process = append(p.process, r*processes/p.ranks)
		}
	}
}

func (p *plan) processes() int { return slices.Max(append([]int{0}, p.process...)) + 1 }

// wire chooses options, and variables of the environment.
func (p *plan) wire(rnd *rand.Rand) {
	set := func(name string, values ...string) {
		if v := values[rnd.IntN(len(values))]; v != "" {
			p.env = append(p.env, name+"="+v)
		}
	}
	set("GOCCL_WIRE", "", "", "auth", "encrypt")
	set("GOCCL_CHECKSUM", "", "", "1")
	set("GOCCL_SOCKETS", "", "", "1", "2", "4")
	set("GOCCL_SHM_READ", "", "", "0")
	set("GOCCL_ALGO", "", "", "", "allreduce=ring", "allreduce=doubling", "allreduce=dissemination", "allreduce=hier",
		"broadcast=scatter-ring", "reduce=scatter-ring", "allgather=ring", "gather=direct", "scatter=direct", "allreduce=hier-ring")
	p.strict, p.rankOrder = rnd.IntN(5) == 0, rnd.IntN(5) == 0
}

// draw chooses the steps. Growing comes before the first loss: a Comm of Shrink has no store.
func (p *plan) draw(rnd *rand.Rand) {
	total := 3 + rnd.IntN(7)
	alive := map[int]bool{} // processes with workers
	for _, process := range p.process[:p.ranks] {
		alive[process] = true
	}
	spares, grown := p.spares, false
	for i := range total {
		s := step{number: i, kind: kind(rnd.IntN(int(failing)))}
		switch r := rnd.IntN(10); {
		case r < 3 && p.ranks > 1:
			s.kind = failing
		case r == 3 && p.late > 0 && !grown:
			s.kind, grown = growing, true
		case r < 5 && len(alive) > 1:
			s.kind = killing
			s.victim = p.process[rnd.IntN(p.ranks)]
			lost := p.inProcess(s.victim)
			if !alive[s.victim] {
				s.kind = blocking // it is gone already
				break
			}
			delete(alive, s.victim)
			if spares -= lost; spares < 0 {
				grown = true // from here on without a store
			}
		}
		p.steps = append(p.steps, s)
	}
}

// inProcess is how many ranks a process has.
func (p *plan) inProcess(process int) (n int) {
	for _, q := range p.process[:p.ranks] {
		n += is(q == process)
	}
	return n
}

func (p *plan) String() string {
	text := fmt.Sprintf("job %s: %d ranks in processes %v on hosts %v", p.name, p.ranks, p.process, p.host)
	if p.spares+p.late > 0 {
		text += fmt.Sprintf(", %d spares, %d late", p.spares, p.late)
	}
	if p.strict {
		text += ", strict"
	}
	if p.rankOrder {
		text += ", in rank order"
	}
	for _, e := range p.env {
		text += ", " + e
	}
	for _, s := range p.steps {
		text += fmt.Sprintf("; %d %v", s.number, s.kind)
		if s.kind == killing {
			text += fmt.Sprintf(" process %d", s.victim)
		}
	}
	return text
}

// smaller lists names of less than this job, the boldest first.
func (p *plan) smaller() (names []string) {
	add := func(format string, args ...any) { names = append(names, p.name+fmt.Sprintf(format, args...)) }
	numbers := func(steps []step) string {
		var s []string
		for _, x := range steps {
			s = append(s, strconv.Itoa(x.number))
		}
		return strings.Join(s, ",")
	}
	n := len(p.steps)
	for size := n / 2; size > 0; size /= 2 {
		for from := 0; from < n; from += size {
			without := slices.Concat(p.steps[:from], p.steps[min(from+size, n):])
			if len(without) > 0 {
				add("/keep=%s", numbers(without))
			}
		}
	}
	if slices.Max(p.host) > 0 {
		add("/hosts=1")
	}
	if p.processes() > 1 && p.spares+p.late == 0 && !slices.ContainsFunc(p.steps, func(s step) bool { return s.kind == killing }) {
		add("/goroutines")
	}
	if len(p.env) > 0 || p.strict || p.rankOrder {
		add("/plain")
	}
	if p.bytes > 4096 {
		add("/bytes=%d", p.bytes/16)
	}
	return names
}
