package rounds

import (
	"container/heap"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// The patterns in virtual time, on machines with many cores: what the choice of tuning.ChooseForm is held against. Each line has
// an owner. A core that looks for it before it is written sees it after the way between the two; one that finds it there may
// go on to the next line after Next. Readers of one line are served one after another, Share apart. The arithmetic, which
// is the same in all forms, takes no time.

// machine is one call under way.
type machine struct {
	at    []tuning.Place
	l     tuning.Lines
	form  tuning.Form
	bytes int
	cores []core
	ready []int            // a heap of ranks by clock
	wrote map[slot]float64 // when it was posted
	free  map[line]float64 // when the line's next reader is served
	waits map[slot][]int   // ranks that look for it
}

type slot struct{ rank, round int }

type line struct {
	slot
	i int
}

type core struct {
	steps   []step
	clock   float64
	pending float64 // when all that it has asked for is there
	blocked bool    // it looks for a line that is not there
}

// writes reports whether its next step is not to read.
func (c *core) writes() bool { return len(c.steps) > 0 && c.steps[0].do <= post }

func (w *machine) Len() int { return len(w.ready) }
func (w *machine) Less(i, j int) bool {
	a, b := &w.cores[w.ready[i]], &w.cores[w.ready[j]]
	return a.clock < b.clock || a.clock == b.clock && a.writes() && !b.writes()
}
func (w *machine) Swap(i, j int) { w.ready[i], w.ready[j] = w.ready[j], w.ready[i] }
func (w *machine) Push(x any)    { w.ready = append(w.ready, x.(int)) }
func (w *machine) Pop() any {
	last := w.ready[len(w.ready)-1]
	w.ready = w.ready[:len(w.ready)-1]
	return last
}

// way is how long a line takes from rank a to rank b.
func (w *machine) way(a, b int) float64 {
	p, q := w.at[a], w.at[b]
	switch {
	case p.Socket != q.Socket:
		return float64(w.l.Socket)
	case p.Group != q.Group:
		return float64(w.l.Other)
	}
	return float64(w.l.Same)
}

// simulated is how long the last rank takes for a call that all begin at once.
func simulated(at []tuning.Place, l tuning.Lines, form tuning.Form, bytes int) float64 {
	w := &machine{at: at, l: l, form: form, bytes: bytes, cores: make([]core, len(at)),
		wrote: map[slot]float64{}, free: map[line]float64{}, waits: map[slot][]int{}}
	for r := range w.cores {
		w.cores[r].steps = pattern(form, len(at), r)
		heap.Push(w, r)
	}
	end, left := 0.0, len(at)
	for w.Len() > 0 {
		me := heap.Pop(w).(int)
		c := &w.cores[me]
		if len(c.steps) == 0 {
			end, left = max(end, c.clock, c.pending), left-1
			continue
		}
		if w.step(me, c, c.steps[0]) {
			c.steps = c.steps[1:]
			heap.Push(w, me)
		}
	}
	if left > 0 {
		panic("ranks wait for ever")
	}
	return end
}

// step makes a step, or has the rank wait for a post that wakes it.
func (w *machine) step(me int, c *core, s step) bool {
	at := slot{s.rank, s.round}
	switch s.do {
	case post:
		c.clock = max(c.clock, c.pending)
		w.wrote[at] = c.clock
		for _, r := range w.waits[at] {
			w.cores[r].clock = max(w.cores[r].clock, c.clock)
			w.cores[r].pending = max(w.cores[r].pending, c.clock)
			heap.Push(w, r)
		}
		delete(w.waits, at)
	case await:
		if _, ok := w.wrote[at]; !ok {
			w.waits[at] = append(w.waits[at], me)
			c.blocked = true
			return false
		}
		w.read(me, c, line{at, 0})
		if c.blocked { // what follows is not asked for before this is there
			c.clock, c.blocked = max(c.clock, c.pending), false
		}
	case gather, take:
		if s.rank == me {
			break
		}
		length := w.bytes
		if s.do == take && w.form.Group > 0 && s.round == 0 {
			length = min(w.form.Group, len(w.at)-s.rank) * w.bytes
		}
		for i := 1; i < tuning.SlotLines(length); i++ {
			w.read(me, c, line{at, i})
		}
	}
	return true
}

// read asks for a line that has been written.
func (w *machine) read(me int, c *core, l line) {
	served := max(c.clock, w.free[l])
	w.free[l] = served + float64(w.l.Share)
	c.pending = max(c.pending, served+w.way(l.rank, me))
	c.clock += float64(w.l.Next)
}

// placed are the places of n ranks in order over sockets of so many cores, of which `share` in a row have one cache.
func placed(n, sockets, cores, share int) []tuning.Place {
	at := make([]tuning.Place, n)
	for r := range at {
		c := r * sockets * cores / n
		at[r] = tuning.Place{Group: c / share, Socket: c / cores}
	}
	return at
}

// Small cases that are worked out by hand.
func TestSimulated(t *testing.T) {
	l := tuning.Lines{Same: 50, Other: 100, Socket: 200, Next: 10, Share: 5}
	for _, tc := range []struct {
		name  string
		at    []tuning.Place
		form  tuning.Form
		bytes int
		want  float64
	}{
		{"two ranks", placed(2, 1, 2, 2), tuning.Flat, 8, 50},
		// Each asks for the second line at 10.
		{"three ranks", placed(3, 1, 3, 3), tuning.Flat, 8, 10 + 50},
		// The last of six lines at 50; the other reader is served first in one of them.
		{"three ranks, three lines each", placed(3, 1, 3, 3), tuning.Flat, 128, 5*10 + 5 + 50},
		// The leaders post at 50. A member sees the other group's 100 later, at 155 if the leader is served first, and then asks
		// for that of its own.
		{"two groups", placed(4, 1, 4, 2), tuning.Form{Group: 2}, 8, 50 + 5 + 100 + 50},
		// The leaders post again at 150, and their members see that 50 later.
		{"two groups, a tree", placed(4, 1, 4, 2), tuning.Form{Group: 2, Tree: true}, 8, 50 + 100 + 50},
	} {
		require.Equal(t, tc.want, simulated(tc.at, l, tc.form, tc.bytes), tc.name)
	}
}

// field are the machines that the forms are simulated on.
var field = []struct {
	name                   string
	sockets, cores, shared int
	lines                  tuning.Lines
	ranks                  []int
}{
	{"2 x 52 cores, a cache per socket", 2, 52, 52, tuning.Lines{Same: 51, Other: 51, Socket: 108, Next: 7, Share: 5}, []int{12, 24, 52, 104}},
	{"the same, 1 ns a reader", 2, 52, 52, tuning.Lines{Same: 51, Other: 51, Socket: 108, Next: 7, Share: 1}, []int{12, 24, 52, 104}},
	{"the same, 20 ns a reader", 2, 52, 52, tuning.Lines{Same: 51, Other: 51, Socket: 108, Next: 7, Share: 20}, []int{12, 24, 52, 104}},
	{"the same, 2 ns a further line", 2, 52, 52, tuning.Lines{Same: 51, Other: 51, Socket: 108, Next: 2, Share: 2}, []int{12, 24, 52, 104}},
	{"2 x 64 cores, 8 to a cache", 2, 64, 8, tuning.Lines{Same: 23, Other: 107, Socket: 197, Next: 7, Share: 5}, []int{16, 32, 64, 128}},
}

// bestOf is the form with the least simulated time among those for which ok holds.
func bestOf(at []tuning.Place, l tuning.Lines, ok func(tuning.Form) bool) (best tuning.Form, least float64) {
	for m := 2; m <= min(len(at)/2, 64); m++ {
		for _, tree := range []bool{false, true} {
			f := tuning.Form{Group: m, Tree: tree}
			if us := simulated(at, l, f, 8); ok(f) && (least == 0 || us < least) {
				best, least = f, us
			}
		}
	}
	return best, least
}

var writeTable = flag.Bool("write", false, "write the table of docs/costs.md")

const (
	formsPage  = "../../../docs/costs.md"
	formsBegin = "<!-- forms: go test ./ccl/internal/rounds -run TestFormsPage -args -write -->\n"
	formsEnd   = "<!-- end of forms -->\n"
)

// In the simulation the choice is never slower than the flat form, and takes at most a third longer than the best of all. The
// table of docs/costs.md has what was simulated.
func TestFormsPage(t *testing.T) {
	var b strings.Builder
	b.WriteString("| machine | ranks | flat | grouped | tree | chosen |\n|---|---|---|---|---|---|\n")
	for _, f := range field {
		for _, n := range f.ranks {
			at := placed(n, f.sockets, f.cores, f.shared)
			flat := simulated(at, f.lines, tuning.Flat, 8)
			grouped, us2 := bestOf(at, f.lines, func(f tuning.Form) bool { return !f.Tree })
			tree, us3 := bestOf(at, f.lines, func(f tuning.Form) bool { return f.Tree })
			chosen := tuning.ChooseForm(at, f.lines)
			us := simulated(at, f.lines, chosen, 8)
			name := chosen.String()
			if chosen != tuning.Flat {
				name += fmt.Sprintf(", %.0f", us)
			}
			fmt.Fprintf(&b, "| %s | %d | %.0f | %.0f (%d) | %.0f (%d) | %s |\n", f.name, n, flat, us2, grouped.Group, us3, tree.Group, name)
			assert.LessOrEqual(t, us, 1.3*min(us2, us3), "%s, %d ranks", f.name, n)
			assert.LessOrEqual(t, us, flat, "%s, %d ranks", f.name, n)
		}
	}
	t.Log("\n" + b.String())
	text, err := os.ReadFile(formsPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), formsBegin)
	table, after, ended := strings.Cut(rest, formsEnd)
	require.True(t, found && ended, "%s lacks the marks %q and %q", formsPage, formsBegin, formsEnd)
	if *writeTable {
		require.NoError(t, os.WriteFile(formsPage, []byte(before+formsBegin+b.String()+formsEnd+after), 0o644))
		return
	}
	require.Equal(t, b.String(), table, "write it by the command in the page")
}
