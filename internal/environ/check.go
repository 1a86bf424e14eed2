package environ

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A Misspelling is a variable that is set and that nobody reads, and what was probably meant.
type Misspelling struct {
	Name string
	// Meant is nil where no name of the registry is close.
	Meant *Var
}

func (m Misspelling) String() string {
	if m.Meant == nil {
		return m.Name + " is not a variable of goccl"
	}
	return fmt.Sprintf("%s is not a variable of goccl; did you mean %s?", m.Name, m.Meant.Name)
}

// Check looks at an environment, a list of NAME=VALUE. The error says which variables of groups (of
// any, if none is given) have values that they do not take, and which names are misspellings of
// variables without which another job would start than was meant. All other names that look like
// misspellings are in the list.
func Check(environ []string, groups ...Group) (misspelt []Misspelling, err error) {
	var wrong []string
	for _, kv := range perhaps(environ) {
		name, value, _ := strings.Cut(kv, "=")
		if v := Known(name); v != nil {
			counts := len(groups) == 0 || slices.Contains(groups, v.Group)
			if counts && value != "" && v.check(value) != nil {
				wrong = append(wrong, v.wrong(value).Error())
			}
			continue
		}
		if value == "" || !ours(name) {
			continue
		}
		m := Misspelling{name, nearest(name)}
		switch {
		case m.Meant == nil:
		case m.Meant.Vital:
			wrong = append(wrong, m.String())
		default:
			misspelt = append(misspelt, m)
		}
	}
	if wrong != nil {
		err = errors.New(strings.Join(wrong, "; "))
	}
	return misspelt, err
}

// Strangers returns the names of an environment that begin as goccl's do, or nearly, and that
// nobody reads.
func Strangers(environ []string) (list []Misspelling) {
	for _, kv := range perhaps(environ) {
		name, _, _ := strings.Cut(kv, "=")
		if Known(name) != nil || !ours(name) {
			continue
		}
		if m := (Misspelling{name, nearest(name)}); m.Meant != nil || strings.HasPrefix(name, Prefix) {
			list = append(list, m)
		}
	}
	return list
}

// perhaps are the entries of an environment that may be goccl's, in order. Every rank of a process looks at its
// environment, which has few of them.
func perhaps(environ []string) (some []string) {
	for _, kv := range environ {
		if strings.HasPrefix(kv, "GOC") || strings.HasPrefix(kv, "GCCL_") || len(kv) > len(Prefix) &&
			strings.EqualFold(kv[:len(Prefix)], Prefix) {
			some = append(some, kv)
		}
	}
	slices.Sort(some)
	return some
}

// ours reports whether a name that the registry does not have may have been meant for it. Tests have
// names of their own, and Kubernetes sets variables for each service, one called goccl among them.
func ours(name string) bool {
	if strings.HasPrefix(name, Prefix+"TEST_") || strings.HasSuffix(name, "_SERVICE_HOST") ||
		strings.Contains(name, "_SERVICE_PORT") || strings.HasSuffix(name, "_PORT") || strings.Contains(name, "_PORT_") {
		return false
	}
	return strings.HasPrefix(name, "GOC") || strings.HasPrefix(name, "GCCL_") ||
		strings.HasPrefix(strings.ToUpper(name), Prefix)
}

// nearest is the variable, tests' excepted, whose name differs from name by a slip or two; else nil.
func nearest(name string) (best *Var) {
	const slips = 2
	least := slips + 1
	for _, v := range all {
		if v.Group == Test {
			continue
		}
		allowed := slips
		if len(v.Name)-len(Prefix) < 6 {
			allowed = 1 // two slips make any word of four letters another
		}
		if d := Distance(strings.ToUpper(name), v.Name); d <= allowed && d < least {
			best, least = v, d
		}
	}
	return best
}

// Distance is how many letters must be put in, left out, replaced or swapped with their neighbour to
// make a into b (optimal string alignment; Damerau, 1964).
func Distance(a, b string) int {
	last, row := make([]int, len(b)+1), make([]int, len(b)+1) // for i-2, i-1
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			next[j] = min(row[j]+1, next[j-1]+1, row[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], last[j-2]+1)
			}
		}
		last, row = row, next
	}
	return row[len(b)]
}

// Match reports whether name is one of patterns, of which one that ends in * stands for all names that begin so.
func Match(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return name == pattern || open && strings.HasPrefix(name, prefix)
	})
}

// Without is an environment without the variables whose names match patterns.
func Without(environ, patterns []string) (kept []string) {
	for _, kv := range environ {
		if name, _, _ := strings.Cut(kv, "="); !Match(patterns, name) {
			kept = append(kept, kv)
		}
	}
	return kept
}
