package model

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// step is one thing that may happen in a state, and the state after it.
type step[S any] struct {
	what  deed
	fault bool // it need not happen: a state in which nothing else can is an end
	to    S
}

// deed says what a step is: a format, and the numbers that it is about.
type deed struct {
	text string
	a, b int8
	more string
}

func (d deed) String() string {
	args := []any{d.a, d.b, d.more}
	return fmt.Sprintf(d.text, args[:strings.Count(d.text, "%")]...)
}

// system is what is explored.
type system[S any] interface {
	start() S
	// steps lists all that may happen next.
	steps(s S, list []step[S]) []step[S]
	// check says what is wrong with a state; end, that nothing happens any more unless something goes wrong.
	check(s S, end bool) error
	// key tells states apart.
	key(s S, b []byte) []byte
}

// done adds a step to a list, and returns the state that it leads to, which is s until the caller changes it.
func done[S any](s *S, list *[]step[*S], fault bool, text string, a, b int) *S {
	t := *s
	*list = append(*list, step[*S]{deed{text, int8(a), int8(b), ""}, fault, &t})
	return &t
}

// result is what an exploration has found.
type result struct {
	states int
	wrong  error    // the first thing found, in the fewest steps
	trace  []string // which they are
}

func (r result) String() string {
	if r.wrong == nil {
		return fmt.Sprintf("%d states", r.states)
	}
	return fmt.Sprintf("%v, after %d steps:\n\t%s", r.wrong, len(r.trace), strings.Join(r.trace, "\n\t"))
}

// explore visits every state that can be reached, those first that take the fewest steps. Two states of one
// hash of 64 bits count as one: of ten million states, some are left out with a chance of one in 300,000.
func explore[S any](sys system[S]) result {
	type visit struct {
		before int32
		what   deed
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
		b = sys.key(s, b[:0])
		h, n := maphash.Bytes(seed, b), len(seen)
		seen[h] = struct{}{}
		return len(seen) > n
	}
	first := sys.start()
	isNew(first)
	visits = append(visits, visit{before: -1})
	var all []step[S]
	var from, to []byte
	for level := []open{{first, 0}}; len(level) > 0; {
		var next []open
		for i, o := range level {
			level[i] = open{} // to be freed
			all = sys.steps(o.s, all[:0])
			from = sys.key(o.s, from[:0])
			end := true
			for i := 0; i < len(all) && end; i++ { // a step that changes nothing is none
				if !all[i].fault {
					to = sys.key(all[i].to, to[:0])
					end = bytes.Equal(from, to)
				}
			}
			if err := sys.check(o.s, end); err != nil {
				return result{len(visits), err, trace(o.at)}
			}
			for _, x := range all {
				if isNew(x.to) {
					visits = append(visits, visit{o.at, x.what})
					next = append(next, open{x.to, int32(len(visits) - 1)})
				}
			}
		}
		level = next
	}
	return result{states: len(visits)}
}
