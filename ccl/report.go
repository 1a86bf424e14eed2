package ccl

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/environ"
)

// What a Comm reports by itself: a rank that is late, ranks that wait for each other, and, when a Comm fails, the last
// calls of each rank and where all of them stood.

// reporter writes what there is to report about a Comm into its log, and where GOCCL_TRACE says.
type reporter struct{ c *Comm }

// watch tells the engine what reports need, and where they go.
func (r reporter) watch(o *plane.Options) {
	c := r.c
	o.Host = c.host
	o.StallWarn = environ.StallWarn.Get()
	o.Busy = func() bool { return c.life.busy.Load() || c.life.runs.Load() }
	o.Caller = c.rec.callers.last
	o.OnLate = func(l status.Late) { c.opt.Log.Warn(r.lateText(&l), r.attrs()...) }
	o.OnCircle = func(w []status.Wait) {
		c.opt.Log.Warn(circleText(w), r.attrs()...)
	}
	o.OnPicture = func(_ call.Code, s []status.Status) {
		if c.opt.Log.Enabled(context.Background(), slog.LevelDebug) {
			for _, line := range r.pictureText(s) {
				c.opt.Log.Debug(line, r.attrs()[:2]...)
			}
		}
		r.writePicture(s)
	}
}

// attrs say which Comm a report is about; one that is still being made has no more to tell.
func (r reporter) attrs() []any {
	c := r.c
	if !c.life.ready.Load() {
		return []any{"job", "being made", "host", c.host}
	}
	return []any{"job", c.eng.Control().Standing.Job(), "rank", c.eng.World(c.Rank())}
}

// callIn is the call of a status, as its Comm's order numbers it.
func callIn(s *status.Status) string {
	call := callOf(&s.Call)
	if s.Call.Kind == 0 {
		return "no call"
	}
	call.Caller = s.Caller()
	return call.String()
}

// lateText reads like: ccl: tp: AllReduce #41 float x 1024 sum at train.go:88 has waited for 10s:
// rank 5 on host b has not arrived; its last call is Broadcast #40 float x 8 root 0
func (r reporter) lateText(l *status.Late) string {
	text := fmt.Sprintf("ccl: %s: %s has waited for %v on %s:", l.Waits.Name(), callIn(&l.Waits),
		roundedMillis(l.Waits.Waited), rankOf(&l.Waits))
	switch {
	case l.Waits.ForItself():
		return text + " it waits for itself"
	case l.Stuck != nil:
		return text + stuckText(l)
	case len(l.Late) == 0 && len(l.Unheard) == 0:
		return text + " all ranks are in it"
	case len(l.Late) == 0:
		return fmt.Sprintf("%s %s: no answer", text, r.inJob(l.Waits.Comm, l.Unheard))
	}
	text += joined(l.Late[:min(len(l.Late), 8)], ";", func(s status.Status) string {
		what := cmp.Or(map[status.Doing]string{status.Waits: "it waits in ", status.AtWork: "it is in "}[s.Doing],
			"its last call is ") + callIn(&s)
		if s.Call.Kind == 0 {
			what = "it has made no call yet"
		}
		return fmt.Sprintf(" %s on host %s has not arrived; %s", rankOf(&s), s.Host(), what)
	})
	if more := len(l.Late) - 8; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if len(l.Unheard) > 0 {
		text += "; no answer from " + r.inJob(l.Waits.Comm, l.Unheard)
	}
	return text
}

// stuckText is what is said of a message whose two ends are there, and which does not move. It reads like:
// rank 1 on host b is in the matching Recv, and nothing moves between the two: 65536 of 33554432 bytes have.
func stuckText(l *status.Late) string {
	text := fmt.Sprintf(" %s on host %s is in the matching %s, and nothing moves between the two", rankOf(l.Stuck),
		l.Stuck.Host(), Kind(l.Stuck.Call.Kind))
	if l.Of > 0 {
		text += fmt.Sprintf("; %d of %d bytes have", l.Done, l.Of)
	}
	if l.Stuck.Node != l.Waits.Node {
		text += ". Where small messages pass and large ones do not, compare the MTU of both hosts and of the network between them"
	}
	return text
}

// rankOf reads like: rank 1 (world rank 5)
func rankOf(s *status.Status) string {
	return fmt.Sprintf("rank %d%s", s.Rank, inWorld([]int{int(s.World)}, []int{int(s.Rank)}))
}

// inJob reads like: ranks 1, 2 (world ranks 5, 6). For a Comm that is not its own, and for one that
// is still being made, it knows only the Comm's own ranks.
func (r reporter) inJob(comm uint64, of []int) string {
	c := r.c
	text := fmt.Sprintf("rank%s %s", plural(len(of)), ranks(of))
	if !c.life.ready.Load() || comm != c.eng.ID() {
		return text
	}
	world := make([]int, len(of))
	for i, rank := range of {
		world[i] = c.eng.World(rank)
	}
	return text + inWorld(world, of)
}

func roundedMillis(ms uint32) time.Duration {
	d := time.Duration(ms) * time.Millisecond
	if d > time.Second {
		return d.Round(100 * time.Millisecond)
	}
	return d
}

// circleText reads like: ccl: deadlock: rank 0 in tp #5 waits for 1; rank 1 in dp #7 waits for 0
func circleText(circle []status.Wait) string {
	text := "ccl: deadlock:" + joined(circle, ";", func(w status.Wait) string {
		on := strconv.Itoa(int(w.On))
		if w.On == w.World {
			on = "itself"
		}
		return fmt.Sprintf(" rank %d in %s #%d waits for %s", w.World, w.Name(), callOf(&w.Call).Seq, on)
	}) + "."
	inAll := func(k Kind) bool {
		return !slices.ContainsFunc(circle, func(w status.Wait) bool { return Kind(w.Call.Kind) != k })
	}
	switch {
	case len(circle) == 1:
		text += " A rank sends to itself, and receives that, by SendRecv, or by both calls in one Group."
	case inAll(KindSend):
		text += " All of them are in Send, and none in Recv: let one receive first, or use SendRecv."
	case inAll(KindRecv):
		text += " All of them are in Recv, and none in Send: let one send first, or use SendRecv."
	}
	return text + joined(circle, "", func(w status.Wait) string {
		return fmt.Sprintf(" Rank %d on host %s: %s.", w.World, w.Host(), callIn(&w.Status))
	})
}

// pictureText says, Comm by Comm, at which call its ranks stood: a line for those that did the same.
func (r reporter) pictureText(all []status.Status) []string {
	type group struct {
		comm  uint64
		name  string // as these ranks have it: of the pool of a job with spares, those that wait have their own
		text  string
		ranks []int
		world []int // the same in the job
	}
	var groups []*group
	last, heard := map[uint64]*status.Status{}, map[[2]uint64]bool{} // of each Comm; by Comm and rank
	for i := range all {
		s := &all[i]
		text := map[status.Doing]string{status.Waits: "waited in ", status.AtWork: "in ",
			status.Outside: "in no call; the last was "}[s.Doing] + callIn(s)
		if s.Call.Kind == 0 {
			text = "in no call yet"
		}
		if s.Host() != "" {
			text += " on host " + s.Host()
		}
		at := slices.IndexFunc(groups, func(g *group) bool {
			return g.comm == s.Comm && g.name == s.Name() &&
				g.text == text
		})
		if at < 0 {
			at, groups = len(groups), append(groups, &group{comm: s.Comm, name: s.Name(), text: text})
		}
		g := groups[at]
		g.ranks, g.world = append(g.ranks, int(s.Rank)), append(g.world, int(s.World))
		last[s.Comm], heard[[2]uint64{s.Comm, uint64(s.Rank)}] = s, true
	}
	var lines []string
	for i, g := range groups {
		s := last[g.comm]
		lines = append(lines, fmt.Sprintf("ccl: state at failure: %s: rank%s %s%s: %s", g.name, plural(len(g.ranks)),
			ranks(g.ranks), inWorld(g.world, g.ranks), g.text))
		if i+1 < len(groups) && groups[i+1].comm == g.comm {
			continue
		}
		var unheard []int
		for rank := range int(s.Size) {
			if !heard[[2]uint64{g.comm, uint64(rank)}] {
				unheard = append(unheard, rank)
			}
		}
		if len(unheard) > 0 {
			lines = append(lines, fmt.Sprintf("ccl: state at failure: %s: %s: no response", s.Name(), r.inJob(g.comm, unheard)))
		}
	}
	return lines
}

// warned is how many letters of a failure are a warning: with the time and the level before it, a
// line of 120. The call that failed returns all of it, and so does the line of its last calls, at
// level Debug.
const warned = 94

// headline is the beginning of a text that is longer.
func headline(text string) string {
	if letters := []rune(text); len(letters) > warned {
		return string(letters[:warned-3]) + "..."
	}
	return text
}

// failure logs that this rank's Comm has failed, and its last calls, and writes these where GOCCL_TRACE says.
func (r reporter) failure(e *Error) {
	c := r.c
	if c.opt.pool != nil {
		return
	}
	warn := func() { c.opt.Log.Warn(headline(e.Error())) }
	switch {
	case !alarming(e.Code): // a program did it on purpose
	case e.Code == ErrRankLost:
		c.eng.Control().Standing.Tell(e.Peer, warn)
	default:
		warn()
	}
	if c.opt.Log.Enabled(context.Background(), slog.LevelDebug) {
		c.opt.Log.Debug(fmt.Sprintf("%v; last calls of %s %s on host %s: %s", e, c.Name(),
			r.inJob(c.eng.ID(), []int{c.Rank()}), c.host, callsText(c.rec.kept(&c.backlog, shownCalls))))
	}
	r.writeTrace("failure", e)
}

// alarming reports whether a failure is one that nobody asked for.
func alarming(code Code) bool { return code != ErrClosed && code != ErrCanceled && code != ErrAborted }
