package plane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// A circle is named when it is found twice in a row, and once.
func TestCirclesAreConfirmed(t *testing.T) {
	of := func(calls ...uint64) (found []status.Wait) {
		for i, n := range calls {
			found = append(found, status.Wait{Status: status.Status{World: int32(i), Calls: n}})
		}
		return found
	}
	var k circles
	for i, tc := range []struct {
		found []status.Wait
		want  bool
	}{
		{of(1, 2), false}, {of(1, 2), true}, {of(1, 2), false}, {of(1, 3), false}, {nil, false}, {of(1, 3), false}, {of(1, 4), false}, {of(1, 4), true},
		{of(1, 2), false}, {of(1, 2), true},
	} {
		assert.Equal(t, tc.want, k.confirm(tc.found), "the %d. look", i)
	}
}
