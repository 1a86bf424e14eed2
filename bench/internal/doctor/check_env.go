package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
)

// unread is what goccl cannot read of an environment: values that it refuses, and variables that
// nobody reads, most of them misspelt. Their names leave the process, and the values of those that
// are refused, unless they are about the secret.
func unread(around []string) (refused string, strange []string) {
	if _, err := environ.Check(around); err != nil {
		refused = err.Error()
	}
	for _, m := range environ.Strangers(around) {
		if m.Meant == nil || !m.Meant.Vital {
			strange = append(strange, m.String())
		}
	}
	return refused, strange
}

// unreadable tells of values for which a job would not start, and then of variables that nobody reads.
func (e *exam) unreadable() {
	told := map[string]bool{"": true}
	tell := func(f *facts, level, remedy, text string) {
		if !told[text] {
			told[text] = true
			e.say("environment", level, remedy, "rank %d on %s: %s", f.Rank, f.Host, text)
		}
	}
	for _, f := range e.ranks {
		tell(f, failure, "docs/environment.md has what each variable takes", f.Refused)
	}
	for _, f := range e.ranks {
		for _, text := range f.Strange {
			tell(f, warning, "docs/environment.md lists the variables", text)
		}
	}
}

// differing tells of variables that are not the same on all ranks.
func (e *exam) differing() {
	names := map[string]bool{}
	values := make([]map[string]string, len(e.ranks))
	for i, f := range e.ranks {
		values[i] = map[string]string{}
		for _, kv := range f.Env {
			name, v, _ := strings.Cut(kv, "=")
			names[name], values[i][name] = true, v
		}
	}
	told := 0
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for i := range e.ranks {
			a, b := values[0][name], values[i][name]
			if a == b {
				continue
			}
			told++
			e.say("environment", warning, "set it to one value for all ranks before they start (mpiexec --envall, srun --export=ALL, mpirun -x "+name+")",
				"%s differs: rank %d on %s has %s, rank %d on %s has %s", name,
				e.ranks[0].Rank, e.ranks[0].Host, quoted(a), e.ranks[i].Rank, e.ranks[i].Host, quoted(b))
			break
		}
	}
	switch {
	case told == 0 && len(names) == 0:
		e.say("environment", ok, "", "no relevant variable is set")
	case told == 0:
		e.say("environment", ok, "", "%s on all ranks", alike(len(names)))
	}
}

func alike(n int) string {
	if n == 1 {
		return "the one relevant variable is the same"
	}
	return fmt.Sprintf("the %d relevant variables are the same", n)
}

// harmful tells of settings known to hurt.
func (e *exam) harmful() {
	for _, h := range harms() {
		for _, f := range e.ranks {
			if v := getenvOf(f.Env)(h.Name); hurts(&h, v) {
				e.say("environment", warning, h.Remedy, "%s=%s on rank %d: %s", h.Name, v, f.Rank, h.Why)
				break
			}
		}
	}
}

func quoted(s string) string {
	if s == "" {
		return "none"
	}
	return fmt.Sprintf("%.80q", s)
}
