package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/bench/internal/prose"
)

// event is one event of Chrome's Trace Event Format, which ui.perfetto.dev and chrome://tracing
// show. Times are microseconds.
type event struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"` // X a slice, i an instant, M the name of a lane
	Time  float64        `json:"ts"`
	Took  *float64       `json:"dur,omitempty"`
	Rank  int            `json:"pid"` // a process of the picture
	Lane  int            `json:"tid"`
	Scope string         `json:"s,omitempty"` // of an instant
	Args  map[string]any `json:"args,omitempty"`
}

// timeline is the file.
type timeline struct {
	Events []event `json:"traceEvents"` // names first, then as time goes
	Unit   string  `json:"displayTimeUnit"`

	names []event
}

// lanesEach is how many lanes the picture of a Comm may have on a rank: calls that overlap, as on
// several streams, need more than one.
const lanesEach = 64

// picture draws jobs: a process for each rank, in it a lane for each Comm.
func picture(jobs []*job) *timeline {
	t := &timeline{Unit: "ms", names: []event{}}
	base := 0
	for _, j := range jobs {
		base += t.draw(j, base)
	}
	slices.SortStableFunc(t.Events, func(a, b event) int { return cmp.Compare(a.Time, b.Time) })
	for i := len(t.Events) - 1; i >= 0; i-- {
		t.Events[i].Time -= t.Events[0].Time
	}
	t.Events = append(t.names, t.Events...)
	return t
}

// draw adds a job, whose rank 0 is process base of the picture, and returns how many processes it has.
func (t *timeline) draw(j *job, base int) (processes int) {
	clocks := align(j)
	ids := slices.SortedFunc(maps.Keys(j.comms), func(a, b string) int {
		return cmp.Or(cmp.Compare(j.comms[b].size, j.comms[a].size), cmp.Compare(a, b)) // the world first
	})
	named := map[int]bool{}
	for nth, id := range ids {
		c := j.comms[id]
		for _, rank := range slices.Sorted(maps.Keys(c.ranks)) {
			l := c.ranks[rank]
			p := base + l.World
			processes = max(processes, l.World+1)
			if !named[p] {
				named[p] = true
				t.label("process_name", p, 0, map[string]any{"name": fmt.Sprintf("rank %d (host %s, pid %d, job %s)", l.World,
					l.Host, l.PID, short(j.id))})
				t.label("process_sort_index", p, 0, map[string]any{"sort_index": p})
			}
			t.lane(c.title(), p, 1+nth*lanesEach, l, clocks[processOf(l)])
		}
		for _, rank := range slices.Sorted(maps.Keys(c.standing)) {
			if l := c.standing[rank]; c.ranks[rank] == nil && !named[base+l.World] {
				named[base+l.World] = true
				processes = max(processes, l.World+1)
				t.silent(c.title(), base+l.World, 1+nth*lanesEach, l, clocks[writer(clocks, l)])
			}
		}
	}
	return processes
}

// title names a Comm: after a Shrink there are two of one name.
func (c *comm) title() string { return fmt.Sprintf("%s (%s)", c.name, prose.Count(c.size, "rank")) }

// writer is the process that has written how another rank stood: that line has the other's host.
func writer(clocks map[process]time.Duration, l *line) (w process) {
	for p := range clocks {
		if p.pid == l.PID && (w.pid != p.pid || p.host < w.host) {
			w = p
		}
	}
	return w
}

// label names a process or a lane.
func (t *timeline) label(what string, process, lane int, args map[string]any) {
	t.names = append(t.names, event{Name: what, Phase: "M", Rank: process, Lane: lane, Args: args})
}

// slice is a call with its place in the picture.
type slice struct {
	*call
	from, to time.Duration
	rough    bool // it was shorter than the clock tells
}

// tick is how often the clock is set that calls read.
const tick = 5 * time.Millisecond

// placed are the calls of a line in the order in which they began; what had not begun is left out.
// Calls that begin at one reading of the clock, of which only the last ones last to another, have
// come one after the other: they share the time up to then.
func (l *line) placed() (list []slice) {
	calls := slices.Concat(l.Calls, l.Graphs)
	for i := range calls {
		c := &calls[i]
		switch c.State {
		case "issued":
			continue
		case "running": // when this was written
			list = append(list, slice{c, c.Start, max(l.Clock, c.Start), false})
		default:
			list = append(list, slice{c, c.Start, max(c.End, c.Start), false})
		}
	}
	slices.SortStableFunc(list, func(a, b slice) int { return cmp.Compare(a.from, b.from) })
	for i := 0; i < len(list); {
		n := 1
		for i+n < len(list) && list[i+n].from == list[i].from {
			n++
		}
		next := time.Duration(math.MaxInt64)
		if i+n < len(list) {
			next = list[i+n].from
		}
		share(list[i:i+n], next)
		i += n
	}
	slices.SortStableFunc(list, func(a, b slice) int { // what holds others before them
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	return list
}

// share places calls that begin at one reading of the clock; the call after them begins at next. Calls
// that also end at that reading came before the first call that lasts.
func share(list []slice, next time.Duration) {
	n, from := len(list), list[0].from
	short := slices.IndexFunc(list, func(s slice) bool { return s.to > from })
	room := min(tick, next-from)
	switch {
	case short == 0:
		return // at the same time, or as long as the clock says
	case short < 0:
		short = n - 1 // the last lasts until the others have had theirs
		list[n-1].to = from + room
	}
	lasting := list[short:]
	for _, s := range lasting {
		if s.to > from {
			room = min(room, s.to-from)
		}
	}
	at := func(i int) time.Duration { return from + room*time.Duration(i)/time.Duration(short+1) }
	for i := range list[:short] {
		list[i].from, list[i].to, list[i].rough = at(i), at(i+1), true
	}
	for i := range lasting {
		lasting[i].from, lasting[i].to, lasting[i].rough = at(short), max(lasting[i].to, at(short)), true
	}
}

// lane draws what one rank has recorded of a Comm. Slices of a lane must lie beside each other or within each other.
func (t *timeline) lane(comm string, process, first int, l *line, clock time.Duration) {
	var open [][]time.Duration // by lane, the ends of the slices that hold the next one
	for _, s := range l.placed() {
		at := 0
		for ; ; at++ {
			if at == len(open) {
				open = append(open, nil)
				name := comm
				if at > 0 {
					name = fmt.Sprintf("%s, beside it (%d)", comm, at)
				}
				t.label("thread_name", process, first+at, map[string]any{"name": name})
				t.label("thread_sort_index", process, first+at, map[string]any{"sort_index": first + at})
			}
			for n := len(open[at]); n > 0 && open[at][n-1] <= s.from; n-- {
				open[at] = open[at][:n-1]
			}
			if n := len(open[at]); n == 0 || s.to <= open[at][n-1] || at == lanesEach-1 {
				open[at] = append(open[at], s.to)
				break
			}
		}
		took := micros(s.to - s.from)
		args := map[string]any{"call": s.shape(), "number": s.Seq, "state": s.State}
		if s.Caller != "" {
			args["caller"] = s.Caller
		}
		if s.rough {
			args["time"] = "within 5 ms: the clock of the flight recorder tells no more"
		}
		t.Events = append(t.Events, event{Name: s.Kind, Cat: comm, Phase: "X", Time: micros(clock + s.from), Took: &took,
			Rank: process, Lane: first + at, Args: args})
	}
	if open == nil {
		t.label("thread_name", process, first, map[string]any{"name": comm})
	}
	if l.Code != "" {
		t.Events = append(t.Events, event{Name: l.Code, Cat: comm, Phase: "i", Scope: "p", Time: micros(clock + l.Clock),
			Rank: process, Lane: first, Args: map[string]any{"error": l.Error}})
	}
}

// silent draws a rank that has written nothing, where another one has told how it stood.
func (t *timeline) silent(comm string, process, lane int, l *line, clock time.Duration) {
	t.label("process_name", process, 0,
		map[string]any{"name": fmt.Sprintf("rank %d (host %s; it has written nothing)", l.World, l.Host)})
	t.label("process_sort_index", process, 0, map[string]any{"sort_index": process})
	t.label("thread_name", process, lane, map[string]any{"name": comm})
	name := "in no call"
	if k := l.last(); k != nil {
		name = "last seen: " + k.String()
	}
	t.Events = append(t.Events, event{Name: name, Cat: comm, Phase: "i", Scope: "p", Time: micros(clock + l.Clock),
		Rank: process, Lane: lane, Args: map[string]any{"doing": l.Doing}})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// write writes the file.
func (t *timeline) write(w io.Writer) error { return json.NewEncoder(w).Encode(t) }
