package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Until when what a rank has told of its wait counts, for a call that has begun a second ago.
func TestStillWaits(t *testing.T) {
	const now = int64(time.Hour)
	since := now - int64(time.Second)
	for _, tc := range []struct {
		name string
		s    Status
		want bool
	}{
		{"it has just said so", Status{Doing: Waits, heard: now}, true},
		{"it has said so before the call began", Status{Doing: Waits, heard: now - int64(3*time.Second)}, true},
		{"it has not been heard of for long", Status{Doing: Waits, heard: now - int64(10*time.Second)}, false},
		{"it is in no call", Status{Doing: Outside, heard: now}, false},
		{"its Comm has failed since the call began", Status{Doing: Waits, Failed: true, heard: since}, true},
		{"its Comm has failed before", Status{Doing: Waits, Failed: true, heard: since - 1}, false},
	} {
		tc.s.Size = 4
		assert.Equal(t, tc.want, tc.s.StillWaits(now, since), tc.name)
	}
}
