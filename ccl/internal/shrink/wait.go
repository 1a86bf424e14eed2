package shrink

import (
	"context"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/agree"
	"github.com/goccl/goccl/internal/backoff"
)

// How a rank waits in an agreement. In each phase a member waits for its lead, and the lead for
// all: for one of them at a time, in the order of the ranks. So each knows whose word comes next,
// and sleeps until that rank rings its bell, as in a call (see package plane). It then looks at
// that rank alone. A lead that all others tell something wakes at most once for each, and mostly
// finds that several have come; a member wakes three times.
//
// A look at all ranks is due at first, when ranks have been lost, and when the one that is waited
// for has closed the Comm or comes to its end. It is also due after a sleep that ended without a
// word, since a rank that gives up, or closes the Comm, rings all: but at most every lookEvery,
// since a ring may come late, when its word has been heard already. No wait depends on a bell: none
// is longer than sleepMost.
//
// What comes over TCP rings no bell. A rank that waits for ranks of other hosts takes naps.
//
// In a large Comm a rank waits so for the ranks below it in the tree, then for the rank above it.

const (
	agreeNapMin = 20 * time.Microsecond
	agreeNapMax = time.Millisecond
	sleepMost   = 50 * time.Millisecond
	quiet       = time.Second            // after which who does not lead looks less often: a spare waits for days
	lookEvery   = 5 * time.Millisecond   // at all ranks, at most
	quitAfter   = 100 * time.Millisecond // in which the lead may say why
	reportEvery = 20 * time.Millisecond  // between two reports to the rank above
)

// waits is how a rank waits.
type waits struct {
	bell   plane.Waiter
	rest   backoff.Sleep // where it cannot sleep until it is rung
	looked time.Time     // at all ranks; zero: never
	losses int           // of ranks of the job, by then
	slept  bool          // and nothing has come since
	heard  time.Time     // when something came last, or it began
	unsent []*line       // which have something to send yet
	told   time.Time     // when it last reported

	looks, hears, sleeps int // at all ranks, at one line, and how often it slept: the tests count them
}

// isDue reports whether it is time to look at all ranks.
func (a *Agreement) isDue() bool {
	w, c := &a.waits, a.c.rank
	if w.looked.IsZero() {
		return true
	}
	c.Site.Scan()
	if c.Site.Job.Losses() != w.losses {
		return true
	}
	if c.Group.Topology().Nodes() > 1 &&
		(a.Party.Leads() && c.Group.Size() <= a.c.flat || time.Since(w.looked) > lookEvery) {
		return true // lines to other hosts are to be kept
	}
	return a.isOver(a.Party.First())
}

// isOver reports whether rank r of this host has closed the Comm, or come to the end of this agreement.
func (a *Agreement) isOver(r int) bool {
	c := a.c.rank
	if r < 0 || !a.c.rank.Group.IsHere(r) {
		return false
	}
	l := c.Group.Topology().Local(r)
	return c.Share.Local.State(l).Load() != region.StateOpen || c.Share.Local.Agreed(l).Load() >= uint64(a.Attempt)<<1
}

// say says n over l.
func (a *Agreement) say(l *line, n notice) {
	n.attempt = a.Attempt
	a.put(l, n.says.Kind, n.append(nil))
}

// put says over l what is a notice of that kind on the wire.
func (a *Agreement) put(l *line, kind agree.Kind, wire []byte) {
	if len(l.queue) > 0 {
		l.put(kind, wire) // it is among unsent
		return
	}
	if l.put(kind, wire); len(l.queue) > 0 {
		a.waits.unsent = append(a.waits.unsent, l)
	}
}

// push sends as many of the unsent messages as it can, and reports whether all are sent.
func (a *Agreement) push() bool {
	left := a.waits.unsent[:0]
	for _, l := range a.waits.unsent {
		l.push()
		l.ring()
		if len(l.queue) > 0 {
			left = append(left, l)
		}
	}
	a.waits.unsent = left
	return len(left) == 0
}

// report sends up which of the ranks below this rank have come, so that an error can name the ranks that have not.
func (a *Agreement) report() {
	a.Party.Report()
	a.send()
}

// wait waits for the next word, or a moment, in which this rank says that it is alive.
func (a *Agreement) wait(ctx context.Context) *call.Fault {
	for r, over := range a.quit {
		if over() {
			if a.Party.Dropped(r); a.Party.End != agree.Open {
				return nil
			}
		}
	}
	if f := a.expired(ctx); f != nil && a.Party.MayQuit() {
		a.report()
		a.Party.Give()
		if a.giveUp(f); f.Code == call.Timeout && a.came && !a.Party.Leads() {
			f = a.outOfTime(a.line(a.Party.Up()), f)
		}
		return f
	}
	several := a.c.rank.Group.Topology().Nodes() > 1
	if now := time.Now(); several && now.Sub(a.beaten) > plane.BeatEvery {
		a.beaten = now
		a.offered()
		for _, l := range a.lines {
			if l != nil && !l.inside() && len(l.queue) == 0 {
				a.say(l, notice{says: agree.Notice{Kind: agree.Alive}})
			}
		}
	}
	if now := time.Now(); several && now.Sub(a.waits.told) > reportEvery {
		a.waits.told = now
		a.report()
	}
	first := a.Party.First()
	if !a.push() || first < 0 || !a.c.rank.Group.IsHere(first) || several && a.Party.Leads() {
		if len(a.waits.unsent) == 0 && !a.Party.Leads() && time.Since(a.waits.heard) > quiet {
			time.Sleep(sleepMost / 2)
			return nil
		}
		a.c.rank.Site.Job.Time.Coarse.WakeMonitor() // its lines and the log are to be read soon
		a.waits.rest.Next()
		return nil
	}
	limit := sleepMost
	if a.waits.slept { // in vain: a look at all is due soon
		limit = lookEvery
	}
	if a.c.rank.Park(context.Background(), &a.waits.bell, first, limit) { // ctx rings, too: see run
		a.waits.sleeps++
		a.waits.slept = true
	}
	return nil
}
