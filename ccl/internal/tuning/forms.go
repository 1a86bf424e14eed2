package tuning

import "fmt"

// Small calls on one host have three forms. In the flat form each rank reads what each of the others has posted. In the others
// the ranks form groups of consecutive ranks, whose first rank, the leader, collects what the group has posted. In the grouped
// form each rank then reads from all leaders. In the tree only the leaders do, and each passes the result on to its group.
//
//	form     one after another        lines that a rank reads                    ranks that read one line
//	flat     1 line                   n-1                                        n-1
//	grouped  2 lines                  leader m-1, all g-1 or g                   n-1
//	tree     3 lines                  leader m-1 + g-1, others 1                 the larger of m-1 and g-1
//
// n is the number of ranks, m that of a group, and g = n/m that of groups. package rounds has the forms, and the simulation
// that this model is compared with.

// Lines is how long cache lines take between cores, in nanoseconds.
type Lines struct {
	// From a store until a core that looks for it sees it: one that shares the last-level cache and the NUMA node,
	// another one of the same socket, and one of another socket.
	Same, Other, Socket int
	// Next is what each further line adds that a core reads in a row and that is there, since their ways overlap.
	Next int
	// Share is what each further core adds that reads the same line.
	Share int
}

// Place is where the core of a rank is: in which group of cores that share a cache and a NUMA node, and in which socket.
type Place struct{ Group, Socket int }

// Form says how the ranks of a host make small calls, and whether they outnumber their cores.
type Form struct {
	Group int  // ranks of a group; 0: flat
	Tree  bool // only leaders read from leaders
	Most  int  // bytes of the largest operand that goes this way; -1: none

	// Crowded: the ranks outnumber their cores, so that what several of them do at once is done by turns.
	Crowded bool
}

// Flat is the form of a Comm with fewer than GroupedFrom ranks on the host. Crowded is that of three or more ranks that outnumber
// their cores.
var (
	Flat    = Form{Most: -1}
	Crowded = Form{Most: -1, Crowded: true}
)

const (
	// GroupedFrom is how many ranks it takes that another form than flat may pay.
	GroupedFrom = 10

	groupMost = 64 // ranks of a group
	usual     = 8  // bytes of the operand that the group is chosen for
	// A form must promise to take at most 9/10 of the flat one: what the model leaves out is in favor of that.
	gainOf, gainTo = 9, 10
)

// between is how long a line takes from a core at a to one at b.
func (l *Lines) between(a, b Place) int {
	switch {
	case a.Socket != b.Socket:
		return l.Socket
	case a.Group != b.Group:
		return l.Other
	}
	return l.Same
}

// spread is the longest way of a line between two of the ranks from, from+step, from+2*step and so on up to end.
func (l *Lines) spread(at []Place, from, end, step int) int {
	most := 0
	for r := from + step; r < end; r += step {
		most = max(most, l.between(at[from], at[r]))
	}
	return most
}

// SlotLines is how many lines a flag and so many bytes take, which lie beside it or in lines of their own.
func SlotLines(bytes int) int {
	if bytes <= BesideFlag {
		return 1
	}
	return 1 + (bytes+63)/64
}

// flat is how long a call of so many bytes takes in the flat form.
func (l *Lines) flat(at []Place, bytes int) int {
	n, k := len(at), SlotLines(bytes)
	return l.spread(at, 0, n, 1) + l.row((n-1)*k, (n-1)*k)
}

// row is what it adds that a rank reads so many lines in a row, of each of which the first is paid, and each is read by
// so many ranks.
func (l *Lines) row(lines, readers int) int {
	return max((lines-1)*l.Next, (readers-1)*l.Share, 0)
}

// cost is how long a call of so many bytes takes in form f.
func (l *Lines) cost(at []Place, f Form, bytes int) int {
	n, m := len(at), f.Group
	if m == 0 {
		return l.flat(at, bytes)
	}
	g := (n + m - 1) / m
	near := 0
	for lead := 0; lead < n; lead += m {
		near = max(near, l.spread(at, lead, min(lead+m, n), 1))
	}
	one, all := SlotLines(bytes), SlotLines(m*bytes) // a rank's lines, and a leader's
	collect := near + l.row((m-1)*one, 1)
	// A rank looks for the next group's leader, and asks for the lines of the others only when that has posted.
	first := l.between(at[0], at[m])
	if !f.Tree {
		return collect + first + l.spread(at, 0, n, 1) + l.row(g*all, (n-1)*all)
	}
	if g == 2 {
		first = 0
	}
	return collect + first + l.spread(at, 0, n, m) + l.row((g-1)*all, (g-1)*all) + near + l.row(one, (m-1)*one)
}

// ChooseForm returns the form in which ranks whose cores are at the given places make small calls. The same places and times
// give the same form.
func ChooseForm(at []Place, l Lines) Form {
	n := len(at)
	best, flat := Flat, l.flat(at, usual)
	least := flat * gainOf / gainTo
	for m := 2; m <= min(n/2, groupMost); m++ {
		for _, tree := range []bool{false, true} {
			if f := (Form{Group: m, Tree: tree}); l.cost(at, f, usual) < least {
				best, least = f, l.cost(at, f, usual)
			}
		}
	}
	if best.Group == 0 {
		return Flat
	}
	for bytes := usual; bytes*best.Group <= Inline(n); bytes += usual {
		if l.cost(at, best, bytes) > l.flat(at, bytes)*gainOf/gainTo {
			break
		}
		best.Most = bytes
	}
	return best
}

// String is f as bench shows it: flat, groups of 4, or tree of 4.
func (f Form) String() string {
	switch {
	case f.Group == 0:
		return "flat"
	case f.Tree:
		return fmt.Sprintf("tree of %d", f.Group)
	}
	return fmt.Sprintf("groups of %d", f.Group)
}

// Word is f as one word, which is not 0.
func (f Form) Word() uint64 {
	w := 1<<63 | uint64(f.Group)<<32 | uint64(f.Most+1)
	if f.Tree {
		w |= 1 << 62
	}
	if f.Crowded {
		w |= 1 << 61
	}
	return w
}

// FormOf is the form whose word is w.
func FormOf(w uint64) Form {
	return Form{Group: int(w >> 32 & (1<<29 - 1)), Tree: w&(1<<62) != 0, Most: int(w&(1<<32-1)) - 1, Crowded: w&(1<<61) != 0}
}
