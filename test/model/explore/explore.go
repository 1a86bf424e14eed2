// Package explore visits every state that a system can come to, and says after which steps a promise is broken.
package explore

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Step is one thing that may happen in a state, and the state after it.
type Step[S any] struct {
	What  Deed
	Fault bool // it need not happen: a state in which nothing else can is an end
	To    S
}

// Deed says what a step is: a format, and the numbers and the text that it is about.
type Deed struct {
	Text string
	A, B int8
	More string
}

// String is the text with its numbers.
func (d Deed) String() string {
	args := []any{d.A, d.B, d.More}
	return fmt.Sprintf(d.Text, args[:strings.Count(d.Text, "%")]...)
}

// System is what is explored.
type System[S any] interface {
	Start() S
	// Steps appends all that may happen next to list.
	Steps(s S, list []Step[S]) []Step[S]
	// Check says what is wrong with a state; end, that nothing happens any more unless something goes wrong.
	Check(s S, end bool) error
	// Key appends to b what tells states apart.
	Key(s S, b []byte) []byte
}

// Done adds a step to a list, and returns the state that it leads to, which is s until the caller changes it.
func Done[S any](s *S, list *[]Step[*S], fault bool, text string, a, b int) *S {
	t := *s
	*list = append(*list, Step[*S]{Deed{text, int8(a), int8(b), ""}, fault, &t})
	return &t
}

// Result is what an exploration has found.
type Result struct {
	States int
	Wrong  error    // the first thing found, in the fewest steps
	Trace  []string // which they are
}

// String says what was found, and the steps to it.
func (r Result) String() string {
	if r.Wrong == nil {
		return fmt.Sprintf("%d states", r.States)
	}
	return fmt.Sprintf("%v, after %d steps:\n\t%s", r.Wrong, len(r.Trace), strings.Join(r.Trace, "\n\t"))
}

// All visits every state that can be reached, those first that take the fewest steps. Two states of one
// hash of 64 bits count as one: of ten million states, some are left out with a chance of one in 300,000.
func All[S any](sys System[S]) Result {
	type visit struct {
		before int32
		what   Deed
	}
	type open struct {
		s  S
		at int32
	}
	var visits []visit
	trace := func(at int32) (t []string) {
		for ; at > 0; at = visits[at].before {
			t = append(t, visits[at].what.String())
		}
		slices.Reverse(t)
		return t
	}
	seed, seen := maphash.MakeSeed(), map[uint64]struct{}{}
	var b []byte
	isNew := func(s S) bool {
		b = sys.Key(s, b[:0])
		h, n := maphash.Bytes(seed, b), len(seen)
		seen[h] = struct{}{}
		return len(seen) > n
	}
	first := sys.Start()
	isNew(first)
	visits = append(visits, visit{before: -1})
	var all []Step[S]
	var from, to []byte
	for level := []open{{first, 0}}; len(level) > 0; {
		var next []open
		for i, o := range level {
			level[i] = open{} // to be freed
			all = sys.Steps(o.s, all[:0])
			from = sys.Key(o.s, from[:0])
			end := true
			for i := 0; i < len(all) && end; i++ { // a step that changes nothing is none
				if !all[i].Fault {
					to = sys.Key(all[i].To, to[:0])
					end = bytes.Equal(from, to)
				}
			}
			if err := sys.Check(o.s, end); err != nil {
				return Result{len(visits), err, trace(o.at)}
			}
			for _, x := range all {
				if isNew(x.To) {
					visits = append(visits, visit{o.at, x.What})
					next = append(next, open{x.To, int32(len(visits) - 1)})
				}
			}
		}
		level = next
	}
	return Result{States: len(visits)}
}

// Sound explores a system in which nothing must be found.
func Sound[S any](t testing.TB, sys System[S]) {
	t.Helper()
	r := All(sys)
	require.NoError(t, r.Wrong, "%v", r)
	t.Logf("%d states", r.States)
}

// Finds explores a system with a planted error, which must be found after at most so many steps.
func Finds[S any](t testing.TB, sys System[S], want string, most int) {
	t.Helper()
	r := All(sys)
	require.ErrorContains(t, r.Wrong, want)
	require.LessOrEqual(t, len(r.Trace), most, "%v", r)
	t.Log(r)
}
