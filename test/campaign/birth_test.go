package campaign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
	"github.com/goccl/goccl/internal/lobby"
)

// A birth is how the job of a box begins, and who comes later.
type birth struct {
	way  way
	hall int             // the host of the store, -1: there is none
	torn int             // of so many seats, the last, a second job is to be founded in the same store
	late []time.Duration // when those begin that come late
	grow int             // by how many ranks the job is to grow
	when kind            // the fault befalls the hosts once a rank begins such a step; kindCount: at its time
}

// way is how ranks meet.
type way int

const (
	byTCP   way = iota // at rank 0, by boot.TCP
	byStore            // in a hall, by boot.NewStore
	byJoin             // as their environment says, by ccl.Join; the job begins in a hall
	ways
)

// Limits of a birth.
const (
	bornMost  = 30 * time.Second // for all to meet
	bornBound = bornMost + 2*boxBound
	growBound = 90 * time.Second // of one Grow: see decideLimit, answerLimit and meetingLimit of ccl
	growTries = 30
	lateMost  = 10 * time.Minute
	overBound = 15 * time.Second // for who came late to hear that the job is over
)

// bear chooses how the box begins, by chances of its own.
func (b *box) bear() {
	rnd := rand.New(rand.NewPCG(b.seed, 0x6269727468))
	b.birth = birth{way: way(rnd.IntN(int(ways))), hall: -1, when: kindCount}
	hosts := slices.Max(b.host) + 1
	alone := hosts == len(b.host) // each rank has a host, whose environment tells its rank
	if b.birth.way == byJoin && !alone {
		b.birth.way = byStore
	}
	late := rnd.IntN(3)
	if b.birth.way == byJoin && rnd.IntN(2) == 0 && b.ranks > 1 {
		b.birth.torn = 1 + rnd.IntN(b.ranks-1)
		b.spares = 0
		b.host = b.host[:b.ranks]
		b.ranks -= b.birth.torn
		late = 0
	}
	if b.birth.way != byTCP || late > 0 {
		hosts = slices.Max(b.host) + 1
		for range late {
			b.host = append(b.host, hosts)
			b.birth.late = append(b.birth.late, time.Duration(rnd.IntN(1000))*time.Millisecond)
			hosts++
		}
		b.birth.hall = hosts
		hosts++
	}
	b.plan.late = late
	b.process = b.host
	if n := late + b.birth.torn; n > 0 {
		b.birth.grow = 1 + rnd.IntN(n)
		at := min(1+rnd.IntN(4), len(b.steps))
		b.steps = slices.Insert(b.steps, at, step{number: len(b.steps), kind: growing})
		if rnd.IntN(2) == 0 {
			b.birth.when = growing
		}
	}
	f := &b.fault
	if f.kind == "reset" && rnd.IntN(2) == 0 {
		b.birth.when, f.nth = messages, -1
	}
	if f.kind != "pauseall" && rnd.IntN(3) == 0 {
		f.at = time.Duration(rnd.IntN(30_000)) * time.Microsecond
	}
	if b.birth.hall < 0 {
		return
	}
	if rnd.IntN(2) == 0 { // any host, that of the store too
		f.host = rnd.IntN(hosts)
		f.other = (f.host + 1 + rnd.IntN(hosts-1)) % hosts
	}
	if rnd.IntN(6) == 0 {
		f.kind, f.host = []string{"stop", "kill", "silent", "alone"}[rnd.IntN(4)], b.birth.hall
		f.last = time.Duration(1+rnd.IntN(20)) * time.Second
	}
	f.host, f.other = min(f.host, hosts-1), min(f.other, hosts-1)
	if f.other == f.host {
		f.other = (f.host + 1) % hosts
	}
}

func (w *birth) String() string {
	text := []string{"by TCP", "by a store", "by Join"}[w.way]
	if w.torn > 0 {
		text += fmt.Sprintf(", torn, the second job of %d", w.torn)
	}
	if w.hall >= 0 {
		text += fmt.Sprintf(", store on host %d", w.hall)
	}
	if w.grow > 0 {
		text += fmt.Sprintf(", late at %v, grows by %d", w.late, w.grow)
	}
	return text
}

// ofStore reports whether the fault befalls the store alone.
func (b *box) ofStore() bool { return b.birth.hall >= 0 && b.fault.struck(b.birth.hall) }

// jobOf is the job that a seat is started in, its rank there, and the seats of that job. A seat that comes late has none.
func (b *box) jobOf(seat int) (job, rank int, seats []int) {
	first := b.ranks + b.spares
	from, size := 0, first
	switch {
	case seat >= first+b.birth.torn:
		return -1, -1, nil
	case seat >= first:
		job, from, size = 1, first, b.birth.torn
	}
	for s := range size {
		seats = append(seats, from+s)
	}
	return job, seat - from, seats
}

// newborn is what the ranks of a box have in common of its birth.
type newborn struct {
	began   chan struct{} // closed when the first rank begins a step of kind when
	begins  sync.Once
	founded [2][]int         // of each job: the seats that have founded it
	failed  [2][]int         // those that were told why not
	grown   map[string][]int // what became of a Grow, and for whom
}

// hallPort is where the store listens.
const hallPort = 29400

// open has a store listen, on a host of its own.
func (b *box) open(n *simnet.Net) (h *boot.Hall, err error) {
	if b.birth.hall < 0 {
		return nil, nil
	}
	l, err := n.Host(b.birth.hall).Listen(fmt.Sprint("0.0.0.0:", hallPort))
	if err != nil {
		return nil, err
	}
	return boot.ServeHall(l, secretBytes)
}

// store is that of a rank, nil if there is none.
func (b *box) store(n *simnet.Net) (boot.Store, error) {
	if b.birth.hall < 0 {
		return nil, nil
	}
	return boot.DialHall(netip.AddrPortFrom(n.Host(b.birth.hall).Addr(), hallPort).String(), secretBytes)
}

// stored is a bootstrap over a store, on a host of that name.
type stored struct {
	*boot.Stored
	host string
}

func (s stored) HostID() string { return s.host }

// born is how a seat comes to a Comm: with others that have started with it, or late. founds: it is of the first
// ranks of a job.
func (r *boxed) born(ctx context.Context) (c *ccl.Comm, founds bool, err error) {
	b := r.b
	o := &ccl.Options{Timeout: boxTimeout, PeerTimeout: boxSilence, Spares: b.spares, Log: slog.New(slog.DiscardHandler)}
	if o.Store, err = b.store(r.net); err != nil {
		return nil, false, err
	}
	job, rank, seats := b.jobOf(r.seat)
	if job < 0 {
		for !r.all.hasBegun() {
			if !r.all.over().IsZero() {
				return nil, false, ccl.ErrUnused
			}
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(b.birth.late[r.seat-b.ranks-b.spares])
		r.host.Live()
	}
	if job >= 0 {
		root := netip.AddrPortFrom(r.net.Host(b.host[seats[0]]).Addr(), uint16(hallPort+1+job)).String()
		host := fmt.Sprint("host-", b.host[r.seat])
		switch b.birth.way {
		case byTCP, byStore:
			short, cancel := context.WithTimeout(ctx, bornMost)
			defer cancel()
			var boots ccl.Bootstrap
			if b.birth.way == byTCP {
				t, err := boot.TCP(short, root, rank, len(seats), &boot.TCPOptions{Secret: secretBytes, HostID: host})
				if err != nil {
					return nil, true, err
				}
				defer t.Close()
				boots = t
			} else {
				s, err := boot.NewStore(o.Store, "job", rank, len(seats))
				if err != nil {
					return nil, true, err
				}
				boots = stored{s, host}
			}
			if rank >= b.ranks { // a spare waits
				long, cancel := context.WithTimeout(ctx, lateMost)
				defer cancel()
				short = long
			}
			c, err = ccl.NewComm(short, boots, o)
			return c, rank < b.ranks || c == nil, err
		}
		r.host.Launch(fmt.Sprint("GOCCL_RANK=", rank), fmt.Sprint("GOCCL_SIZE=", len(seats)), "GOCCL_ROOT="+root, "GOCCL_HOSTID="+host,
			"GOCCL_SECRET="+secret, fmt.Sprint("GOCCL_BOOT_TIMEOUT=", bornMost))
	}
	long, cancel := context.WithTimeout(ctx, lateMost)
	defer cancel()
	c, err = ccl.Join(long, o)
	if err != nil {
		return nil, job >= 0, err
	}
	return c, len(c.Fresh()) == 0 && c.Size() == len(seats)-b.spares && job >= 0, nil
}

// begin brings a seat into a Comm, and looks at what it hears. Its next step is from; alive is false where it is over.
func (r *boxed) begin(ctx context.Context) (from, epoch int, alive bool) {
	b, f, began := r.b, r.f, time.Now()
	job, rank, seats := b.jobOf(r.seat)
	c, founds, err := r.born(ctx)
	took := time.Since(began)
	r.world = c
	r.host.Live()
	if r.host.Ended() {
		return 0, 0, false
	}
	mine := b.fault.struck(b.host[r.seat])
	r.note("begins: %v, founds %v, %v", c, founds, err)
	if err != nil && job >= 0 && (b.birth.way == byStore || !b.fault.struck(b.host[seats[0]])) { // else they do not even meet
		r.isRouted(err, took)
	}
	switch {
	case errors.Is(err, ccl.ErrUnused):
		r.says("done", nil)
		if at := r.all.over(); !at.IsZero() && time.Since(at) > overBound && !mine && !b.ofStore() {
			f.add("BOUND: seat %d hears %v after the end that it is not needed", r.seat, time.Since(at))
		}
		return 0, 0, false
	case err != nil && job >= 0 && founds:
		r.all.settle(job, r.seat, false)
		if b.fault.mild() {
			f.add("NEWCOMM: seat %d: %v", r.seat, err)
		}
		if rank < b.ranks && took > bornBound && !mine && b.fault.kind != "pauseall" && b.birth.way != byJoin {
			f.add("BOUND: seat %d: NewComm took %v: %v", r.seat, took, err)
		}
		var e *ccl.Error
		if errors.As(err, &e) && e.Code == ccl.ErrRankLost && e.Peer >= 0 && e.Peer < len(seats) && !mine && !b.ofStore() &&
			!b.fault.struck(b.host[seats[e.Peer]]) && !r.all.hasFailed(job, seats[e.Peer]) {
			f.add("BLAME: seat %d: NewComm names seat %d: %v", r.seat, seats[e.Peer], err)
		}
		return 0, 0, false
	case err != nil:
		var e *ccl.Error
		lost := errors.As(err, &e) && e.Code == ccl.ErrRankLost && !r.b.fault.mild() // it was taken in by a job that is lost
		if !mine && !b.ofStore() && !lost {
			f.add("NEWCOMER: seat %d is told: %v", r.seat, err)
		}
		return 0, 0, false
	case founds:
		r.all.settle(job, r.seat, true)
		r.says("begun", nil)
		r.seats = slices.Clone(seats[:len(seats)-is(job == 0)*b.spares])
		if b.spares == 0 {
			return 0, 0, true
		}
		// A rank that is lost just then may have failed the Comm of some: these are in the next by Replace, which the
		// others have from NewComm. So all tell each other where they are, as after a Replace.
	}
	if !founds && len(c.Fresh()) == 0 && c.Size() == 1 { // the store does not know of the job
		if !b.ofStore() && !mine {
			f.add("TWO FOUNDERS: seat %d, which came late", r.seat)
		}
		return 0, 0, false
	}
	r.grows = r.grows || !founds
	if from, err = r.meet(ctx, 0); err != nil {
		r.note("meets nobody: %v", err)
		if founds { // as a step that fails
			return 0, 0, true
		}
		return 0, 0, false
	}
	return from, is(!founds), true
}

func (j *job) over() time.Time {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ended
}

func (j *job) hasBegun() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.founded[0])+len(j.founded[1]) > 0
}

func (j *job) settle(job, seat int, founded bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := &j.failed
	if founded {
		list = &j.founded
	}
	list[job] = append(list[job], seat)
}

func (j *job) hasFailed(job, seat int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Contains(j.failed[job], seat)
}

func (j *job) grew(what string, seat int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.grown[what] = append(j.grown[what], seat)
}

// judgeBirth looks at what all have heard: one job is founded at most, and a Grow counts for all or for none.
func (b *box) judgeBirth(j *job, f *found) {
	if len(j.founded[0]) > 0 && len(j.founded[1]) > 0 && !b.ofStore() {
		f.add("TWO FOUNDERS: seats %v and %v", j.founded[0], j.founded[1])
	}
	for what, seats := range j.grown {
		if of, isNew := strings.CutSuffix(what, "the new Comm"); isNew {
			others := slices.DeleteFunc(slices.Clone(j.grown[of+"the old Comm"]), func(s int) bool { return b.fault.struck(b.host[s]) })
			seats = slices.DeleteFunc(slices.Clone(seats), func(s int) bool { return b.fault.struck(b.host[s]) })
			if len(others) > 0 && len(seats) > 0 {
				f.add("GROW: seats %v have the new Comm, and %v the old one: %s", seats, others, of)
			}
		}
	}
}

// end tells those that wait in the store that the job is over, once all of the first job have ended: of both, where
// none was founded.
func (b *box) end(ctx context.Context, h *boot.Hall, j *job, ended func(seat int) bool) {
	for works := true; works; time.Sleep(50 * time.Millisecond) {
		works = false
		j.mu.Lock()
		one := len(j.founded[0])+len(j.founded[1]) > 0
		for seat := range b.host {
			job, _, _ := b.jobOf(seat)
			works = works || job >= 0 && (!one || len(j.founded[job]) > 0) && !ended(seat)
		}
		j.mu.Unlock()
	}
	j.mu.Lock()
	j.ended = time.Now()
	j.mu.Unlock()
	if h != nil {
		h.Set(ctx, lobby.Over, nil)
	}
}
