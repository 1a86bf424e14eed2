package gone

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/internal/algo"
)

var update = flag.Bool("update", false, "write what the stories of testdata come to")

// TestStories replays the stories of testdata. A line that begins with > is what happens, those after it are what follows.
// Each rank is a process. All processes of a host take the events of its log in the same order; the one that leads it
// exchanges them with the leads of the neighboring hosts.
func TestStories(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			require.NoError(t, err)
			got := tell(t, string(text))
			if *update {
				require.NoError(t, os.WriteFile(name, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got, "go test -run Stories -update writes it")
		})
	}
}

// tell replays a story, and returns it with what follows from each of its steps.
func tell(t *testing.T, text string) string {
	t.Helper()
	var s *story
	var out strings.Builder
	for line := range strings.Lines(text) {
		switch what, isStep := strings.CutPrefix(strings.TrimSpace(line), "> "); {
		case isStep && s == nil:
			var hosts, locals int
			_, err := fmt.Sscanf(what, "%d hosts of %d ranks", &hosts, &locals)
			require.NoError(t, err, line)
			s = newStory(hosts, locals)
			out.WriteString(line)
		case isStep:
			for step := range strings.SplitSeq(what, "; ") { // at the same moment
				require.NoError(t, s.do(step), line)
			}
			s.settle()
			out.WriteString(line)
			for _, l := range s.said {
				fmt.Fprintf(&out, "  %s\n", l)
			}
			s.said = nil
		case strings.HasPrefix(line, "#"), strings.TrimSpace(line) == "":
			out.WriteString(line)
		}
	}
	return out.String()
}

// story is a job whose network keeps the order of what it carries.
type story struct {
	topo    algo.Topology
	ranks   []process
	passed  []map[string]bool // by host: see control.Flood
	mail    []letter
	cut     map[[2]int]bool // pairs of hosts
	numbers uint64
	said    []string
}

type process struct {
	*State
	ended  bool
	stands bool // still; what comes is read when it goes on
	unread []event.Event
	cause  string
	own    []event.Event // that nobody has decided
}

type letter struct {
	from, to int // hosts
	event    event.Event
}

func newStory(hosts, locals int) *story {
	s := &story{topo: algo.Blocks(hosts, locals), cut: map[[2]int]bool{}}
	for range hosts * locals {
		s.ranks = append(s.ranks, process{State: &State{Ranks: Ranks{Topo: s.topo}}})
	}
	for range hosts {
		s.passed = append(s.passed, map[string]bool{})
	}
	return s
}

// do carries out a step.
func (s *story) do(what string) error {
	var a, b int
	scan := func(format string, to ...any) bool {
		n, err := fmt.Sscanf(what, format, to...)
		return err == nil && n == len(to) && fmt.Sprintf(format, deref(to)...) == what
	}
	switch {
	case scan("rank %d ends", &a):
		s.ranks[a].ended = true
		s.endOf(a)
	case scan("rank %d leaves the job", &a):
		s.ranks[a].ended = true
		if w := s.lowest(s.topo.Node(a)); w >= 0 {
			s.post(w, event.New(0, event.RankLeft, a, -1, s.topo.Node(a), nil))
		} else {
			s.toNeighbors(s.topo.Node(a), event.New(0, event.ProcessLeft, a, -1, s.topo.Node(a), nil), a)
		}
	case scan("rank %d stands still", &a):
		s.ranks[a].stands = true
	case scan("rank %d finds rank %d silent", &a, &b):
		s.post(a, event.New(0, call.RankLost, b, -1, s.topo.Node(a), errors.New("its process was silent")))
	case scan("rank %d goes on", &a):
		s.ranks[a].stands = false
		unread := s.ranks[a].unread
		s.ranks[a].unread = nil
		for i := range unread {
			s.take(a, &unread[i])
		}
	case scan("rank %d aborts the Comm", &a):
		s.post(a, event.New(1, call.Aborted, a, a, s.topo.Node(a), errors.New("enough")))
	case scan("hosts %d and %d cannot reach each other", &a, &b):
		s.cut[[2]int{a, b}], s.cut[[2]int{b, a}] = true, true
		for _, p := range [][2]int{{a, b}, {b, a}} {
			if w, o := s.lead(p[0]), s.lead(p[1]); w >= 0 && o >= 0 {
				s.post(w, event.New(0, call.RankLost, o, -1, p[0], errors.New("its host cannot be reached")))
			}
		}
	case what == "150 ms pass":
		for w := range s.ranks {
			own := s.ranks[w].own
			s.ranks[w].own = nil
			for _, e := range own {
				if p := &s.ranks[w]; !p.ended && (e.Comm == 0 && !p.Of(int(e.Peer)).Lost || e.Comm != 0 && p.cause == "") {
					s.say("rank %d believes what nobody has decided: %s", w, subject(&e))
					e.Stage = event.Final
					s.publish(s.topo.Node(w), &e, -1)
				}
			}
		}
	default:
		return fmt.Errorf("no such step: %s", what)
	}
	return nil
}

func deref(to []any) (of []any) {
	for _, p := range to {
		of = append(of, *p.(*int))
	}
	return of
}

func (s *story) say(format string, a ...any) { s.said = append(s.said, fmt.Sprintf(format, a...)) }

// lowest is the lowest rank of host h whose process runs, lead is the rank that leads the host as that process knows.
func (s *story) lowest(h int) int {
	for l := range s.topo.Locals(h) {
		if w := s.topo.Rank(h, l); !s.ranks[w].ended && !s.ranks[w].stands {
			return w
		}
	}
	return -1
}

func (s *story) lead(h int) int {
	w := s.lowest(h)
	if w < 0 {
		return -1
	}
	if lead := s.ranks[w].Lead(h); lead >= 0 && !s.ranks[lead].ended && !s.ranks[lead].stands {
		return lead
	}
	return -1
}

// endOf has those notice the end of rank w that would: its host by the kernel, or the neighbors by the end of the connection.
func (s *story) endOf(w int) {
	h := s.topo.Node(w)
	lost := event.New(0, call.RankLost, w, -1, h, errors.New("its process ended"))
	lost.Loss = event.Certain
	if o := s.lowest(h); o >= 0 {
		s.post(o, lost)
		return
	}
	for n := range s.topo.Nodes() {
		if o := s.lead(n); o >= 0 && n != h && slices.Contains(s.ranks[o].Neighbors(n), h) {
			lost.Node = int32(n)
			s.post(o, lost)
		}
	}
}

// post has rank w find out what e says.
func (s *story) post(w int, e event.Event) {
	e.Origin = int32(w)
	way := s.ranks[w].Post(&e)
	switch way {
	case Dropped:
		s.say("rank %d drops: %s", w, subject(&e))
		return
	case Kept:
		s.say("rank %d keeps: %s", w, subject(&e))
	}
	s.numbers++
	e.Number = s.numbers
	if e.Stage == event.Proposed {
		s.ranks[w].own = append(s.ranks[w].own, e)
	}
	if way == Told {
		s.say("rank %d says: %s", w, text(&e))
		s.publish(s.topo.Node(w), &e, -1)
	}
}

// publish puts e in the log of host h, once. It came from another host, or from none.
func (s *story) publish(h int, e *event.Event, from int) {
	name := fmt.Sprint(e.Origin, e.Number, e.Stage)
	if s.passed[h][name] {
		return
	}
	s.passed[h][name] = true
	for l := range s.topo.Locals(h) {
		w := s.topo.Rank(h, l)
		switch p := &s.ranks[w]; {
		case p.ended:
		case p.stands:
			p.unread = append(p.unread, *e)
		default:
			if s.take(w, e).Pass && s.ranks[w].Lead(h) == w {
				s.toNeighbors(h, *e, w)
			}
		}
	}
}

// toNeighbors sends e to the hosts beside h, as rank w knows them.
func (s *story) toNeighbors(h int, e event.Event, w int) {
	for _, o := range s.ranks[w].Neighbors(h) {
		if !s.cut[[2]int{h, o}] {
			s.mail = append(s.mail, letter{h, o, e})
		}
	}
}

// take has rank w take e in.
func (s *story) take(w int, e *event.Event) (do Effects) {
	p := &s.ranks[w]
	before := p.Lead(s.topo.Node(int(max(e.Peer, 0))))
	do = p.Hear(e, Seen{Host: s.topo.Node(w), Process: []int{int(e.Peer)}})
	if !do.Pass {
		s.say("rank %d does not believe rank %d, which is lost: %s", w, e.Origin, subject(e))
	}
	if do.Believe && p.cause == "" {
		p.cause = subject(e)
		s.say("rank %d's Comm fails: %s", w, p.cause)
	}
	if h := s.topo.Node(int(max(e.Peer, 0))); do.NewLead && p.Lead(h) != before {
		if lead := p.Lead(h); lead >= 0 {
			s.say("rank %d: host %d is led by rank %d now", w, h, lead)
		} else {
			s.say("rank %d: host %d has nobody left", w, h)
		}
	}
	return do
}

// settle delivers what is under way and decides what can be, until nothing is left to do.
func (s *story) settle() {
	for range 10_000 {
		for w := range s.ranks {
			if p := &s.ranks[w]; !p.ended && !p.stands {
				if d, ok := p.Decide(0, s.topo.Node(w), func(o int) bool { return o == w }); ok {
					s.say("rank %d decides: %s", w, subject(&d))
					s.publish(s.topo.Node(w), &d, -1)
				}
			}
		}
		if len(s.mail) == 0 {
			return
		}
		l := s.mail[0]
		s.mail = s.mail[1:]
		if !s.cut[[2]int{l.from, l.to}] && s.lowest(l.to) >= 0 {
			s.publish(l.to, &l.event, l.from)
		}
	}
	s.say("this never ends")
}

// subject is what e says.
func subject(e *event.Event) string {
	switch code := call.Code(e.Code); {
	case code == call.RankLost && e.Loss == event.Certain:
		return fmt.Sprintf("rank %d has ended", e.Peer)
	case code == call.RankLost:
		return fmt.Sprintf("rank %d is lost: %v", e.Peer, e.Cause())
	case code == call.Aborted:
		return fmt.Sprintf("rank %d has aborted the Comm", e.From)
	case code == event.RankLeft, code == event.ProcessLeft:
		return fmt.Sprintf("rank %d has left", e.Peer)
	}
	return fmt.Sprintf("code %d of rank %d", e.Code, e.Peer)
}

// text is what e says, and how far it is.
func text(e *event.Event) string {
	return [...]string{event.Final: "", event.Proposed: "proposed: ", event.Decided: "decided: "}[e.Stage] + subject(e)
}
