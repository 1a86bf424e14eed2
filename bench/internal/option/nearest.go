package option

import (
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
)

// Nearest is the known word closest to word, or the first that begins with it, or "" if none is
// close enough to have been meant.
func Nearest(word string, known []string) string {
	best, least := "", max(1, (len(word)+1)/3)+1
	for _, k := range known {
		if d := environ.Distance(word, k); d < least && d < max(len(word), len(k)) { // a letter in common
			best, least = k, d
		}
	}
	const tellsEnough = 3
	if best == "" && len(word) >= tellsEnough {
		if i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(k, word) }); i >= 0 {
			best = known[i]
		}
	}
	return best
}
