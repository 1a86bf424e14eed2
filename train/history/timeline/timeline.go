// Package timeline records what the ranks of a job do in its steps, by unit of the model, and draws it for
// ui.perfetto.dev: forward, backward and step as the program says them, the reductions and gathers of packages zero and
// ddp as their Comms tell of them.
//
//	t := timeline.New(0)
//	c, err := ccl.NewComm(ctx, cfg, &ccl.Options{OnCall: t.Call}) // also of Comms that are made of c
//	...
//	start := time.Now()
//	x = forward(i, x)
//	t.Add("forward", names[i], start)
//	...
//	err = t.Write(ctx, c, file) // rank 0 writes what all ranks have recorded
//
// The picture has a process for each rank, and in it a lane for each kind of work and for each Comm. bench trace
// -perfetto draws the calls of a job that has failed, with what each waited for.
package timeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Timeline is what one rank has recorded. Any goroutine may add to it. A nil one records nothing.
type Timeline struct {
	mu    sync.Mutex
	most  int
	spans []span // a ring, once it has most
	next  int    // the oldest then
}

type span struct {
	lane, name string
	from       time.Time
	took       time.Duration
}

const defaultSpans = 1 << 16

// New returns a Timeline that keeps the last spans; 0 is 65,536 of them, some 5 MB.
func New(spans int) *Timeline {
	if spans <= 0 {
		spans = defaultSpans
	}
	return &Timeline{most: spans}
}

// Add records that this rank has done something from then until now: in a lane such as "forward", the work on a unit
// of that name. Spans of a lane lie beside each other or within each other; of others, as of the calls of a Group, the
// picture has several lanes of that name.
func (t *Timeline) Add(lane, name string, from time.Time) {
	if t != nil {
		t.add(span{lane, name, from, max(time.Since(from), 0)})
	}
}

// Call is a ccl.Options.OnCall: it records a call that has ended, in the lane of its Comm. A call that
// ccl.Queue.Numbered has numbered, as zero's are by unit, has the number behind its name, from 1 on.
func (t *Timeline) Call(o ccl.Observation) {
	if t == nil {
		return
	}
	name := o.Call.Kind.String()
	if o.Call.Number > 0 {
		name = fmt.Sprintf("%s of unit %d", name, o.Call.Number)
	}
	t.add(span{o.Comm, name, time.Now().Add(-o.Took), o.Took})
}

func (t *Timeline) add(s span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.spans) < t.most {
		t.spans = append(t.spans, s)
		return
	}
	t.spans[t.next] = s
	t.next = (t.next + 1) % t.most
}

// told is a span on its way to rank 0: Before is the time from its beginning to the moment that all ranks share.
type told struct {
	Lane, Name   string
	Before, Took time.Duration
}

// event is one of Chrome's Trace Event Format: X a span, M the name of a process or lane. Times are microseconds.
type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"`
	Took  float64        `json:"dur"`
	Rank  int            `json:"pid"`
	Lane  int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// Write has rank 0 of c write what all its ranks have kept, in one JSON object. It is collective; if rank 0 cannot
// write, or a rank has no Timeline, all ranks have that error. The ranks' clocks are aligned by a barrier: to what that
// takes, some microseconds on a host and a trip between hosts. Rank 0 holds all of it in memory; if that is beyond
// [ccl.MaxValue], encoded, all ranks have an error: then New takes fewer spans.
func (t *Timeline) Write(ctx context.Context, c *ccl.Comm, w io.Writer) error {
	if c == nil {
		return errors.New("timeline: Write without a Comm")
	}
	var bad error
	switch {
	case t == nil:
		bad = errors.New("the Timeline is nil")
	case w == nil && c.Rank() == 0:
		bad = errors.New("the Writer is nil")
	}
	if err := same.Args(ctx, c, "timeline: Write", bad); err != nil {
		return err
	}
	t.mu.Lock()
	kept := append(slices.Clone(t.spans[t.next:]), t.spans[:t.next]...)
	t.mu.Unlock()
	if err := ccl.Barrier(ctx, c); err != nil {
		return fmt.Errorf("timeline: Write: %w", err)
	}
	now := time.Now()
	mine := make([]told, len(kept))
	for i, s := range kept {
		mine[i] = told{s.lane, s.name, now.Sub(s.from), s.took}
	}
	all, err := ccl.GatherValues(ctx, c, mine, 0)
	if err != nil {
		return fmt.Errorf("timeline: Write: %w", err)
	}
	if c.Rank() == 0 {
		err = json.NewEncoder(w).Encode(map[string]any{"displayTimeUnit": "ms", "traceEvents": draw(all)})
	}
	return same.Args(ctx, c, "timeline: Write", err)
}

// draw makes the events of all ranks' spans: names first, then as time goes.
func draw(all [][]told) []event {
	begin := time.Duration(0)
	for _, spans := range all {
		for _, s := range spans {
			begin = max(begin, s.Before)
		}
	}
	names, events := []event{}, []event{}
	for rank, spans := range all {
		names = append(names, event{Name: "process_name", Phase: "M", Rank: rank,
			Args: map[string]any{"name": fmt.Sprintf("rank %d", rank)}},
			event{Name: "process_sort_index", Phase: "M", Rank: rank, Args: map[string]any{"sort_index": rank}})
		slices.SortStableFunc(spans, func(a, b told) int { // what holds others before them
			return cmp.Or(cmp.Compare(b.Before, a.Before), cmp.Compare(b.Took, a.Took))
		})
		var lanes []*lane
		for _, s := range spans {
			at := slices.IndexFunc(lanes, func(l *lane) bool { return l.name == s.Lane && l.takes(s) })
			if at < 0 {
				at, lanes = len(lanes), append(lanes, &lane{s.Lane, []told{s}})
				names = append(names, event{Name: "thread_name", Phase: "M", Rank: rank, Lane: at + 1,
					Args: map[string]any{"name": s.Lane}})
			}
			events = append(events, event{Name: s.Name, Phase: "X", Time: micros(begin - s.Before), Took: micros(s.Took),
				Rank: rank, Lane: at + 1})
		}
	}
	slices.SortStableFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.Time, b.Time), cmp.Compare(b.Took, a.Took))
	})
	return append(names, events...)
}

// lane is one of those that a rank has of a name, with the spans that are open where the next one begins, each within
// the one before. The viewer leaves out a span that is in two of a lane in part.
type lane struct {
	name string
	open []told
}

// takes reports whether s, which begins no earlier than those before, is in order here, and then opens it.
func (l *lane) takes(s told) bool {
	left := func(x told) time.Duration { return x.Before - x.Took } // from the end to the moment that ranks share
	for len(l.open) > 0 && left(l.open[len(l.open)-1]) >= s.Before {
		l.open = l.open[:len(l.open)-1]
	}
	if k := len(l.open); k > 0 && left(l.open[k-1]) > left(s) {
		return false
	}
	l.open = append(l.open, s)
	return true
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
