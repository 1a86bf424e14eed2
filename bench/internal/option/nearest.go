package option

import (
	"slices"
	"strings"
)

// Nearest is the known word closest to word, or the first that begins with it, or "" if none is
// close enough to have been meant.
func Nearest(word string, known []string) string {
	best, least := "", max(1, (len(word)+1)/3)+1
	for _, k := range known {
		if d := distance(word, k); d < least && d < max(len(word), len(k)) { // a letter in common
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

// distance is how many letters must be put in, left out, replaced or swapped with
// their neighbour to make a into b (optimal string alignment; Damerau, 1964).
func distance(a, b string) int {
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
