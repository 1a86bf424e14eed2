package plane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Memory of other processes is read where it pays, in all calls among ranks with a core each, unless the user says otherwise. What
// pays the layout says, which all ranks of a host have in common.
func TestReadPreference(t *testing.T) {
	const cores, from, crowded = 4, 1000, tuning.ReadCrowdedFrom
	for _, tc := range []struct {
		asked      string
		pays       bool // in all calls
		moved      int
		ranks      int
		all, moves bool
		least      int // bytes of a message that is read; 0: none is
	}{
		{"", true, 0, cores, true, true, 1},
		{"", true, 0, cores + 1, false, false, crowded},
		{"", true, from, cores + 1, false, true, crowded},
		{"0", true, from, cores + 1, false, false, 0},
		{"", false, 0, cores, false, false, 0},
		{"", false, from, cores, false, true, from},
		{"1", false, 0, cores + 1, true, true, 1},
		{"0", true, from, cores, false, false, 0},
	} {
		l := tuning.Layout{ReadOthers: tc.pays, ReadMovedFrom: tc.moved}
		w := preferenceOf(tc.asked, &l, tc.ranks, cores)
		assert.Equal(t, readPreference{tc.all, tc.moves, tc.least}, w, "%+v", tc)
		for _, n := range []int{1, from - 1, from, crowded - 1, crowded, 1 << 30} {
			assert.Equal(t, tc.least > 0 && n >= tc.least, w.message(n), "%+v, %d bytes", tc, n)
		}
	}
}
