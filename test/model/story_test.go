package model

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/model/explore"
)

var update = flag.Bool("update", false, "write what the stories of testdata come to")

// TestStories replays the stories of testdata. A line that begins with > is what happens next, as soon as the system
// allows it; the lines before it are what happens until then, and those that begin with = what all have come to.
func TestStories(t *testing.T) {
	spared := &shrinking{n: 4, spares: 1, crashes: 1, cuts: 1}
	spares := &shrinking{n: 4, spares: 2, crashes: 2}
	for _, tc := range []struct {
		name string
		tell func(t *testing.T, text string) string
	}{
		{"replace", told(spared, spared.cameTo)},
		{"replace_with_a_loss", told(spares, spares.cameTo)},
		{"replace_in_a_partition", told(spared, spared.cameTo)},
		{"grow", told(&growing{n: 3}, growState.cameTo)},
		{"grow_with_a_loss", told(&growing{n: 3, crashes: 1}, growState.cameTo)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			file := "testdata/" + tc.name + ".txt"
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			got := tc.tell(t, string(text))
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
				return
			}
			require.Equal(t, string(text), got, "go test -run Stories -update writes it")
		})
	}
}

// told replays stories of a system; cameTo says what all have come to.
func told[S any](sys explore.System[S], cameTo func(S) []string) func(t *testing.T, text string) string {
	return func(t *testing.T, text string) string {
		s := sys.Start()
		var out strings.Builder
		// next takes the first step that nobody's fault is, until the named one may be taken, or, for "", nothing may.
		next := func(name string) {
			for range 1000 {
				all := sys.Steps(s, nil)
				at := slices.IndexFunc(all, func(x explore.Step[S]) bool { return x.What.String() == name })
				if at >= 0 {
					fmt.Fprintf(&out, "> %s\n", name)
					s = all[at].To
					require.NoError(t, sys.Check(s, false), "%s", &out)
					return
				}
				if at = slices.IndexFunc(all, func(x explore.Step[S]) bool { return !x.Fault }); at < 0 {
					require.Empty(t, name, "it cannot happen\n%s", &out)
					return
				}
				fmt.Fprintf(&out, "  %v\n", all[at].What)
				s = all[at].To
				require.NoError(t, sys.Check(s, false), "%s", &out)
			}
			require.Fail(t, "it does not end", "%s", &out)
		}
		for line := range strings.Lines(text) {
			if what, isStep := strings.CutPrefix(line, "> "); isStep {
				next(strings.TrimSpace(what))
			} else if strings.HasPrefix(line, "#") {
				out.WriteString(line)
			}
		}
		next("")
		require.NoError(t, sys.Check(s, true))
		for _, l := range cameTo(s) {
			fmt.Fprintf(&out, "= %s\n", l)
		}
		return out.String()
	}
}

// cameTo is what each rank has come to.
func (m *shrinking) cameTo(s *shrinkState) (all []string) {
	for r := range m.n {
		switch numbers := m.numbers(s, r); {
		case has(s.ended, r):
			all = append(all, fmt.Sprintf("rank %d has ended", r))
		case m.goesOn(s, r) == nil:
			all = append(all, fmt.Sprintf("rank %d does not go on", r))
		case slices.Contains(numbers, -1):
			all = append(all, fmt.Sprintf("rank %d is told that nobody can be number %d", r, slices.Index(numbers, -1)))
		default:
			all = append(all, fmt.Sprintf("rank %d has a Comm of ranks %v", r, numbers))
		}
	}
	return all
}

// cameTo is what each process knows.
func (s growState) cameTo() (all []string) {
	for p := range 3 {
		switch {
		case has(s.ended, p):
			all = append(all, fmt.Sprintf("process %d has ended", p))
		case s.counts[p]:
			all = append(all, fmt.Sprintf("to process %d the meeting counts", p))
		default:
			all = append(all, fmt.Sprintf("to process %d the meeting does not count", p))
		}
	}
	return all
}
