package algo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/op"
)

// ParseOverride reads GOCCL_ALGO, such as "allreduce=ring,broadcast=tree", into a
// table for Choose: the named algorithm for each named kind, whatever the size.
// Nothing is an empty table.
func ParseOverride(text string) (Table, error) {
	var tab Table
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		kindName, name, ok := strings.Cut(item, "=")
		kindName, name = strings.TrimSpace(kindName), strings.TrimSpace(name)
		if !ok {
			return nil, fmt.Errorf("GOCCL_ALGO: %q: an item is collective=algorithm, such as allreduce=ring", item)
		}
		i := slices.IndexFunc(collectives, func(k op.Kind) bool { return k.Flag() == kindName })
		if i < 0 {
			return nil, fmt.Errorf("GOCCL_ALGO: %q: no such collective; there are %s", kindName, names())
		}
		k := collectives[i]
		if known := Names(k); !slices.Contains(known, name) {
			return nil, fmt.Errorf("GOCCL_ALGO: %q: no such algorithm for %s; there are %s", name, k.Flag(),
				strings.Join(known, ", "))
		}
		if slices.ContainsFunc(tab, func(e Entry) bool { return e.Kind == k }) {
			return nil, fmt.Errorf("GOCCL_ALGO: %s is given twice in %q", k.Flag(), text)
		}
		tab = append(tab, Entry{Kind: k, Name: name})
	}
	return tab, nil
}
