package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

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
	for _, h := range harms {
		for _, f := range e.ranks {
			if v := getenvOf(f.Env)(h.name); h.hurts(v) {
				e.say("environment", warning, h.remedy, "%s=%s on rank %d: %s", h.name, v, f.Rank, h.why)
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
