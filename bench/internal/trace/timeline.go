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
)

// event is one event of Chrome's Trace Event Format, which ui.perfetto.dev and chrome://tracing show. Times are microseconds.
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
	Events []event `json:"traceEvents"`
	Unit   string  `json:"displayTimeUnit"`
}

// lanesEach is how many lanes the picture of a Comm may have on a rank: calls that overlap, as on several streams, need more
// than one.
const lanesEach = 64

// picture draws jobs: a process for each rank, in it a lane for each Comm.
func picture(jobs []*job) *timeline {
	t := &timeline{Events: []event{}, Unit: "ms"}
	base := 0
	for _, j := range jobs {
		base += t.draw(j, base)
	}
	least := math.Inf(1)
	for _, e := range t.Events {
		if e.Phase != "M" {
			least = min(least, e.Time)
		}
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Phase != "M" {
			e.Time -= least
		}
	}
	slices.SortStableFunc(t.Events, func(a, b event) int { // names first, then as time goes
		if c := cmp.Compare(b2i(a.Phase != "M"), b2i(b.Phase != "M")); c != 0 {
			return c
		}
		return cmp.Compare(a.Time, b.Time)
	})
	return t
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
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
				t.label("process_name", p, 0, map[string]any{"name": fmt.Sprintf("rank %d (host %s, pid %d, job %s)", l.World, l.Host, l.PID, short(j.id))})
				t.label("process_sort_index", p, 0, map[string]any{"sort_index": p})
			}
			t.lane(c.name, p, 1+nth*lanesEach, l, clocks[processOf(l)])
		}
		for _, rank := range slices.Sorted(maps.Keys(c.standing)) {
			if l := c.standing[rank]; c.ranks[rank] == nil && !named[base+l.World] {
				named[base+l.World] = true
				processes = max(processes, l.World+1)
				t.silent(c.name, base+l.World, 1+nth*lanesEach, l, clocks[writer(clocks, l)])
			}
		}
	}
	return processes
}

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
	t.Events = append(t.Events, event{Name: what, Phase: "M", Rank: process, Lane: lane, Args: args})
}

// lane draws what one rank has recorded of a Comm. Slices of a lane must lie beside each other or within each other.
func (t *timeline) lane(comm string, process, first int, l *line, clock time.Duration) {
	calls := slices.Concat(l.Calls, l.Graphs)
	calls = slices.DeleteFunc(calls, func(c call) bool { return c.State == "issued" }) // it has not begun
	end := func(c *call) time.Duration {
		switch {
		case c.State == "running": // when this was written
			return max(l.Clock, c.Start)
		}
		return max(c.End, c.Start)
	}
	slices.SortStableFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(end(&b), end(&a)))
	})
	var open [][]time.Duration // by lane, the ends of the slices that hold the next one
	for i := range calls {
		c := &calls[i]
		at := 0
		for ; ; at++ {
			if at == len(open) {
				open = append(open, nil)
				name := comm
				if at > 0 {
					name = fmt.Sprintf("%s (%d)", comm, at+1)
				}
				t.label("thread_name", process, first+at, map[string]any{"name": name})
				t.label("thread_sort_index", process, first+at, map[string]any{"sort_index": first + at})
			}
			for n := len(open[at]); n > 0 && open[at][n-1] <= c.Start; n-- {
				open[at] = open[at][:n-1]
			}
			if n := len(open[at]); n == 0 || end(c) <= open[at][n-1] || at == lanesEach-1 {
				open[at] = append(open[at], end(c))
				break
			}
		}
		took := micros(end(c) - c.Start)
		args := map[string]any{"call": c.shape(), "number": c.Seq, "state": c.State}
		if c.Caller != "" {
			args["caller"] = c.Caller
		}
		t.Events = append(t.Events, event{Name: c.Kind, Cat: comm, Phase: "X", Time: micros(clock + c.Start), Took: &took, Rank: process, Lane: first + at, Args: args})
	}
	if open == nil {
		t.label("thread_name", process, first, map[string]any{"name": comm})
	}
	if l.Code != "" {
		t.Events = append(t.Events, event{Name: l.Code, Cat: comm, Phase: "i", Scope: "p", Time: micros(clock + l.Clock), Rank: process, Lane: first, Args: map[string]any{"error": l.Error}})
	}
}

// silent draws a rank that has written nothing, where another one has told how it stood.
func (t *timeline) silent(comm string, process, lane int, l *line, clock time.Duration) {
	t.label("process_name", process, 0, map[string]any{"name": fmt.Sprintf("rank %d (host %s; it has written nothing)", l.World, l.Host)})
	t.label("process_sort_index", process, 0, map[string]any{"sort_index": process})
	t.label("thread_name", process, lane, map[string]any{"name": comm})
	name := "in no call"
	if k := l.last(); k != nil {
		name = "last seen: " + k.String()
	}
	t.Events = append(t.Events, event{Name: name, Cat: comm, Phase: "i", Scope: "p", Time: micros(clock + l.Clock), Rank: process, Lane: lane, Args: map[string]any{"doing": l.Doing}})
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// write writes the file.
func (t *timeline) write(w io.Writer) error { return json.NewEncoder(w).Encode(t) }
