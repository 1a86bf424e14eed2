package algo

import (
	"fmt"
	"slices"
	"strings"
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
		i := slices.Index(kindNames[:], kindName)
		if i < 0 {
			return nil, fmt.Errorf("GOCCL_ALGO: %q: no such collective; there are %s", kindName, strings.Join(kindNames[:], ", "))
		}
		k := Kind(i)
		if names := Names(k); !slices.Contains(names, name) {
			return nil, fmt.Errorf("GOCCL_ALGO: %q: no such algorithm for %s; there are %s", name, k, strings.Join(names, ", "))
		}
		if slices.ContainsFunc(tab, func(e Entry) bool { return e.Kind == k }) {
			return nil, fmt.Errorf("GOCCL_ALGO: %s is given twice in %q", k, text)
		}
		tab = append(tab, Entry{Kind: k, Name: name})
	}
	return tab, nil
}
