package ccl

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// How the ranks of a pool get their numbers. Each tells all others its own number and what it knows
// of the ranks that are not there. All that follows is computed from these words and from where
// each rank of the job runs, so every rank of the pool comes to the same result, and no second
// message is needed.

// seatHead is the fixed part of a roll, in bytes.
const (
	seatHead   = 32
	libraryLen = 16 // of the name of a backend
)

// roll is what a rank of the pool tells the others.
type roll struct {
	number   int    // among the workers, -1 while it waits
	fresh    bool   // it has a number, and not yet the state
	works    bool   // it has had the workers' Comm, or is to have it from the start
	shrinks  bool   // it has called Shrink, and not Replace
	accepted int    // the last generation of the pool that it knows to have had a majority
	backend  string // of the workers' Comm, "" before there was one
	known    []byte // by rank of the job: isLost for one that is not in the pool and known to be lost, hadNumber
}

// What a rank knows of another.
const (
	isLost    = 1 << iota
	hadNumber // among the workers, when this rank last heard of it
)

// append writes a roll:
//
//	0 number + 1, 4 bytes | 4 fresh 1 | 5 works 1 | 6 shrinks 1 | 7 zero 1 | 8 accepted 4 | 12 zero 4 | 16 backend 16 | 32 known, 1 byte for each rank of the job
func (w *roll) append(b []byte) []byte {
	le := binary.LittleEndian
	b = le.AppendUint32(b, uint32(w.number+1))
	b = append(b, bit[byte](w.fresh), bit[byte](w.works), bit[byte](w.shrinks), 0)
	b = le.AppendUint32(b, uint32(w.accepted))
	b = append(b, 0, 0, 0, 0)
	name := make([]byte, libraryLen)
	copy(name, w.backend)
	return append(append(b, name...), w.known...)
}

// parseRoll reads what append has written.
func parseRoll(b []byte) roll {
	le := binary.LittleEndian
	return roll{number: int(le.Uint32(b)) - 1, fresh: b[4] != 0, works: b[5] != 0, shrinks: b[6] != 0,
		accepted: int(le.Uint32(b[8:])),
		backend:  strings.TrimRight(string(b[16:seatHead]), "\x00"), known: b[seatHead:]}
}

// muster is what all ranks of a pool have told.
type muster struct {
	here  []int  // ranks of the job, by rank of the pool
	rolls []roll // of these
}

// lost reports whether anybody knows that rank w of the job, which is not here, is lost. It has
// closed the pool otherwise.
func (m *muster) lost(w int) bool { return m.anyKnows(w, isLost) }

func (m *muster) anyKnows(w int, what byte) bool {
	return slices.ContainsFunc(m.rolls, func(r roll) bool { return r.known[w]&what != 0 })
}

// someClosed reports whether a rank that had a number, of so many ranks of the job, has closed its
// Comm. Where that is how the last of them have gone, the job is over; where all are lost, spares
// take their numbers.
func (m *muster) someClosed(ranks int) bool {
	for w := range ranks {
		if m.anyKnows(w, hadNumber) && !slices.Contains(m.here, w) && !m.lost(w) {
			return true
		}
	}
	return false
}

// accepted is the last generation that any rank knows to have had a majority.
func (m *muster) accepted() int {
	return slices.MaxFunc(m.rolls, func(a, b roll) int { return cmp.Compare(a.accepted, b.accepted) }).accepted
}

// backend is the backend of the workers' Comm, as the ranks report that have been in one.
func (m *muster) backend() (name string) {
	for i := range m.rolls {
		name = cmp.Or(name, m.rolls[i].backend)
	}
	return name
}

// shrink reports whether the ranks that work have called Shrink. odd is one that has made another
// call than the first, -1 if there is none.
func (m *muster) shrink() (is bool, odd int) {
	first := true
	for i, w := range m.rolls {
		switch {
		case !w.works:
		case first:
			first, is = false, w.shrinks
		case w.shrinks != is:
			return is, m.here[i]
		}
	}
	return is, -1
}

// seats is which rank of the job has which number.
type seats struct {
	of      []int // by number
	fresh   []int // numbers whose rank has not the state yet, ascending
	waiting []int // ranks of the job that wait
	missing []int // numbers for which there is no spare, ascending; of is not filled then
}

// seat gives the numbers that nobody has to ranks that wait. A number goes to a spare of the host
// where the rank of the job with that number runs, so that hosts keep their shape; else to the host
// with most spares. Of a host's spares the lowest comes first.
func (m *muster) seat(workers int, topo algo.Topology) (s seats, err error) {
	s.of = slices.Repeat([]int{-1}, workers)
	fresh := make([]bool, workers)
	for i := range m.rolls {
		switch n := m.rolls[i].number; {
		case n < 0:
			s.waiting = append(s.waiting, m.here[i])
		case n >= workers || s.of[n] >= 0:
			return s, fmt.Errorf("rank %d of the job says that it is number %d of %d, which another is as well", m.here[i], n,
				workers)
		default:
			s.of[n], fresh[n] = m.here[i], m.rolls[i].fresh
		}
	}
	slices.Sort(s.waiting)
	var free []int
	for n, w := range s.of {
		if w < 0 {
			free = append(free, n)
		}
	}
	if len(free) > len(s.waiting) {
		s.missing = free
		return s, nil
	}
	give := func(n, i int) {
		s.of[n], fresh[n] = s.waiting[i], true
		s.waiting = slices.Delete(s.waiting, i, i+1)
	}
	var far []int // numbers without a spare on their host
	for _, n := range free {
		if i := slices.IndexFunc(s.waiting, func(w int) bool { return topo.Node(w) == topo.Node(n) }); i >= 0 {
			give(n, i)
		} else {
			far = append(far, n)
		}
	}
	for _, n := range far {
		give(n, mostSpares(s.waiting, topo))
	}
	for n, is := range fresh {
		if is {
			s.fresh = append(s.fresh, n)
		}
	}
	return s, nil
}

// tooFew is why nobody takes the numbers that are missing.
func (s *seats) tooFew() *call.Fault {
	return &call.Fault{Code: call.RankLost, Peer: -1, Missing: s.missing,
		Err: fmt.Errorf("spares left: %d, ranks lost: %d; Shrink goes on without them", len(s.waiting), len(s.missing))}
}

// mostSpares is the place in waiting of the lowest rank on the host that most of them are on; of
// several such hosts, the lowest.
func mostSpares(waiting []int, topo algo.Topology) int {
	on := map[int]int{}
	for _, w := range waiting {
		on[topo.Node(w)]++
	}
	best := 0
	for i, w := range waiting {
		h, b := topo.Node(w), topo.Node(waiting[best])
		if on[h] > on[b] || on[h] == on[b] && h < b {
			best = i
		}
	}
	return best
}

// exchangeRolls has all ranks of the pool tell each other what they know.
func (r *reserve) exchangeRolls(ctx context.Context, pool *Comm, k *call.Call, shrinks bool) (*muster, *call.Fault) {
	n, job := pool.Size(), pool.eng.Control().Site.Job
	m := &muster{here: make([]int, n), rolls: make([]roll, n)}
	for i := range n {
		m.here[i] = pool.eng.World(i)
	}
	r.mu.Lock()
	mine := roll{number: r.number, fresh: r.fresh, works: r.world < r.workers || r.of != nil, shrinks: shrinks,
		accepted: r.past.accepted, backend: r.lib.backend, known: make([]byte, r.topo.Size())}
	for _, w := range r.seats.of {
		if w >= 0 {
			mine.known[w] |= hadNumber
		}
	}
	r.mu.Unlock()
	for w := range mine.known {
		if !slices.Contains(m.here, w) && job.IsLost(w) {
			mine.known[w] |= isLost
		}
	}
	out := mine.append(nil)
	all := make([]byte, n*len(out))
	if f := pool.eng.Exchange(ctx, k, out, all); f != nil {
		return nil, f
	}
	for i := range n {
		m.rolls[i] = parseRoll(all[i*len(out) : (i+1)*len(out)])
	}
	return m, nil
}

// outcome is how a seating came out for all ranks of the pool.
type outcome uint8

const (
	unsettled outcome = iota // it failed
	seated                   // the workers have a Comm
	tooFew                   // more numbers are free than spares wait
	minority                 // the others of the pool may go on without these ranks
	over                     // no rank works any more: the last ones have closed
	deserted                 // the same: they are lost, and are more than spares wait
)

// seat gives numbers out in pool, and makes the Comm of the ranks that have one. c is nil on a rank that waits.
func (r *reserve) seat(ctx context.Context, pool *Comm, shrinks bool) (c *Comm, out outcome, f *call.Fault) {
	f = closedHere // unless the call begins
	err := makeOwn(ctx, pool, call.Replace, func(k *call.Call) *call.Fault {
		if c, out, f = r.seatIn(ctx, pool, k, shrinks); out == unsettled {
			return f
		}
		return nil // the ranks have agreed, if only that there is no Comm
	})
	if err != nil && f == closedHere && !pool.life.closed.Load() {
		// the call has not begun for another reason, as that ctx has ended
		f = faultInJob(ctx, pool, err)
	}
	return c, out, f
}

// seatIn is seat, within the call k.
func (r *reserve) seatIn(ctx context.Context, pool *Comm, k *call.Call, shrinks bool) (*Comm, outcome, *call.Fault) {
	m, f := r.exchangeRolls(ctx, pool, k, shrinks)
	if f != nil {
		return nil, unsettled, inJob(f, pool.eng.World)
	}
	s, err := m.seat(r.workers, r.topo)
	if err != nil {
		return nil, unsettled, call.NewFault(call.Backend, -1, "%w", err)
	}
	shrink, odd := m.shrink()
	if len(s.missing) > 0 && (odd >= 0 || !shrink) && !inject.Wrong("ccl.seat") {
		// What all have told each must have heard before one acts on it: to call Shrink, as those do that
		// have heard that there are too few spares, fails the pool.
		_ = cpu.RollCall(ctx, pool.eng, k)
	}
	switch {
	case odd >= 0 && len(s.missing) == 0:
		return nil, unsettled, call.NewFault(call.Mismatch, odd, "some ranks call Shrink, and others Replace")
	case odd >= 0 && shrinks: // the others have not heard that there are too few spares; they hear it now, and come again
		return nil, unsettled, call.NewFault(call.Aborted, odd, "it calls Replace")
	case odd >= 0:
		return nil, tooFew, s.tooFew()
	case shrink:
		return r.make(ctx, pool, k, m, r.number >= 0 && (r.world < r.workers || r.of != nil))
	}
	out, f := r.judge(m, &s)
	r.tellLost() // of what was heard before this rank knew who waits
	if out != seated {
		return nil, out, f
	}
	r.take(pool, m, &s)
	c, out, f := r.make(ctx, pool, k, m, r.number >= 0)
	if c != nil {
		r.made(c)
	}
	return c, out, f
}

// make makes the Comm of those ranks of the pool that are in it, in the order of their numbers.
func (r *reserve) make(ctx context.Context, pool *Comm, k *call.Call, m *muster,
	in bool) (*Comm, outcome, *call.Fault) {
	color, key := -1, 0
	if in {
		color, key = 0, r.number
	}
	opt := r.opt
	opt.Backend = cmp.Or(m.backend(), opt.Backend)
	if r.lib.device != nil { // on which the program has its memory
		opt.Device = r.lib.device
	}
	world := pool.eng.World // of the ranks of a fault
	c, f := newComm(opt, pool.tab, pool.host, cmp.Or(r.opt.Name, worldName),
		func(eo plane.Options) (*cpu.Comm, *call.Fault) {
			return cpu.Split(ctx, pool.eng, k, color, key, eo)
		}, func(child *cpu.Comm) (*library, *call.Fault) {
			if child == nil {
				return nil, nil
			}
			world = child.World
			_ = opt.links.agree(ctx, child) // where it fails, so does meetIn
			if f := meetIn(ctx, child); f != nil {
				return nil, f
			}
			local, locals := r.place(r.world, r.number)
			if r.opt.born > 0 || m.backend() != "" { // ranks have come later than others
				if f := (vote{ctx, child}).freeDevice(&opt.Options, local, locals); f != nil {
					return nil, f
				}
			}
			return openLibraryAt(ctx, child, &opt.Options, local, locals)
		})
	if f != nil {
		return nil, unsettled, inJob(f, world)
	}
	return c, seated, nil
}

// meetIn returns once all ranks of child, a new Comm of the workers, have it: from then on nothing
// that one of them does, such as to call Replace at once, which fails the pool, keeps another from
// getting it. Where one is lost here, or the program of one that has its Comm already has aborted
// it, the others get theirs as well, which has failed. So there is a fault only if ctx ends, or if a
// rank has not got the Comm, as a spare was lost just then: nobody has returned it, and all go round
// again.
func meetIn(ctx context.Context, child *cpu.Comm) *call.Fault {
	returned := false
	defer func() {
		if !returned { // the goroutine is ended in here, as by ccltest.Kill
			child.Close()
		}
	}()
	err := vote{ctx, child}.run(op.Barrier, TypeNone, Sum, nil, nil)
	if returned = true; err == nil {
		return nil
	}
	if f := faultOf(err); f.Own || cpu.NeverWhole(f) {
		return f
	}
	return nil
}

// faultInJob is the Fault in err, of a call on pool, with ranks of the job.
func faultInJob(ctx context.Context, pool *Comm, err error) *call.Fault {
	var e *Error
	if !errors.As(err, &e) {
		return call.NewFault(call.Backend, -1, "%w", err)
	}
	return inJob(&call.Fault{Code: call.Code(e.Code), Peer: e.Peer, Missing: e.Missing, Own: ctx.Err() != nil,
		Err: e.Err}, pool.eng.World)
}

// inJob is f with ranks of the job in the place of those of a Comm.
func inJob(f *call.Fault, world func(int) int) *call.Fault {
	if f == closedHere {
		return f
	}
	g := *f
	if g.Peer >= 0 {
		g.Peer = world(g.Peer)
	}
	g.Missing = make([]int, len(f.Missing))
	for i, r := range f.Missing {
		g.Missing[i] = world(r)
	}
	return &g
}

// judge says how it comes out before anybody takes a number: seated, if they are to.
func (r *reserve) judge(m *muster, s *seats) (outcome, *call.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	works := slices.ContainsFunc(m.rolls, func(w roll) bool { return w.works })
	if !works && m.someClosed(r.workers+r.opt.Spares) { // whatever became of others
		return over, call.NewFault(call.Closed, -1, "no rank works any more")
	}
	for w := range r.workers + r.opt.Spares {
		if !works && !slices.Contains(m.here, w) && !r.past.gone[w] {
			// whatever the majority: spares have not heard how far the others came
			return minority, call.NewFault(call.RankLost, -1,
				"rank %d of the job may go on, with all that work: only spares are here", w)
		}
	}
	if of, ok := r.past.hasMajority(m.accepted(), m.here); !ok {
		return minority, call.NewFault(call.RankLost, -1,
			"this side of a partition has %d of %d ranks of the job, spares included, and is not to go on: the others may",
			len(m.here), of)
	}
	r.past.accept()
	r.seats.waiting = s.waiting
	if !works && len(s.missing) > 0 {
		return deserted, call.NewFault(call.RankLost, -1, "all ranks that worked are lost; spares left: %d, ranks lost: %d",
			len(s.waiting), len(s.missing))
	}
	if len(s.missing) > 0 {
		return tooFew, s.tooFew()
	}
	return seated, nil
}

// take notes this rank's number and who has the others.
func (r *reserve) take(pool *Comm, m *muster, s *seats) {
	me := pool.eng.World(pool.Rank())
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seats = *s
	if n := slices.Index(s.of, me); r.number < 0 && n >= 0 {
		r.number, r.fresh = n, true
		pool.SetName(poolName)
	}
}

// place is the local number by which rank w of the job chooses its device, as number: that of the
// rank whose number it takes, where it runs on that one's host, since that device is free; else its
// own, which no worker of its host has.
func (r *reserve) place(w, number int) (local, locals int) {
	if r.topo.Node(number) == r.topo.Node(w) {
		w = number
	}
	return r.topo.Local(w), r.topo.Locals(r.topo.Node(w))
}
