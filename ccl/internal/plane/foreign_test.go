package plane

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The monitor hears when a foreign call began or, with none under way, when the device came to a stand.
func TestForeignSince(t *testing.T) {
	for _, tc := range []struct {
		name   string
		began  uint64
		stands int64
		want   uint64
	}{
		{"neither", 0, 0, 0},
		{"a call", ForeignCall | 7, 0, ForeignCall | 7},
		{"a device that stands", 0, 9, ForeignCall | 9},
		{"a device that stands since before the job", 0, -3, ForeignCall},
		{"both", ForeignCall | 7, 9, ForeignCall | 7},
	} {
		var e elsewhere
		e.Foreign.Store(tc.began)
		e.Stands(tc.stands)
		require.Equal(t, tc.want, e.foreignSince(), tc.name)
		e.Stands(0)
		require.Equal(t, tc.began, e.foreignSince(), "%s, until it moves", tc.name)
	}
}
