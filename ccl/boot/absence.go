package boot

import (
	"slices"
	"strings"
)

// absence is what is known of ranks that have not joined.
type absence struct {
	where func(rank int) string // where the launcher put a rank, if it tells
	note  string                // see ground
}

// why says where missing ranks should have been, and what may keep them from coming.
func (a absence) why(missing []int) string {
	note := ""
	if a.note != "" {
		note = " " + a.note + "."
	}
	if a.where == nil {
		return note
	}
	var places []string
	for _, r := range missing {
		if p := a.where(r); p != "" && !slices.Contains(places, p) {
			places = append(places, p)
		}
		if len(places) == 4 {
			places = append(places, "...")
			break
		}
	}
	switch {
	case places == nil:
		return note
	case len(missing) == 1:
		return " It was expected from host " + places[0] + "." + note
	}
	return " They were expected from " + strings.Join(places, ", ") + "." + note
}
