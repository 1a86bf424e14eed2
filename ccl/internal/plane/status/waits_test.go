package status

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Which rank a rank that gives up names, by what the others have told.
func TestLateBehind(t *testing.T) {
	const now = int64(time.Hour)
	waits := func(comm uint64, world, on int32) Status {
		return Status{Comm: comm, World: world, For: on, Size: 4, Doing: Waits, heard: now}
	}
	as := func(s Status, change func(*Status)) Status {
		change(&s)
		return s
	}
	for name, tc := range map[string]struct {
		all  []Status
		want int32
	}{
		"nothing is known of it":            {nil, 1},
		"it is in no call":                  {[]Status{as(waits(1, 1, 2), func(s *Status) { s.Doing = Outside })}, 1},
		"it waits for a late rank":          {[]Status{waits(2, 1, 5)}, 5},
		"it waits for one that waits":       {[]Status{waits(2, 1, 3), waits(3, 3, 5), waits(2, 9, 1)}, 5},
		"it waits for the one that asks":    {[]Status{waits(2, 1, 0)}, -1},
		"it does not say for whom":          {[]Status{waits(2, 1, -1)}, -1},
		"they wait for each other":          {[]Status{waits(2, 1, 3), waits(3, 3, 1)}, -1},
		"it waits in two Comms":             {[]Status{waits(2, 1, 3), waits(4, 1, 5), waits(3, 3, 1)}, 5},
		"its Comm has just failed":          {[]Status{as(waits(2, 1, 5), func(s *Status) { s.Failed, s.heard = true, now-int64(time.Second/2) })}, 5},
		"its Comm has failed long ago":      {[]Status{as(waits(2, 1, 5), func(s *Status) { s.Failed, s.heard = true, now-int64(2*time.Second) })}, 1},
		"it has not been heard of for long": {[]Status{as(waits(2, 1, 5), func(s *Status) { s.heard = now - int64(10*time.Second) })}, 1},
	} {
		end, last := WaitsIn(tc.all, now, time.Second).LateBehind(1, 0)
		assert.Equal(t, tc.want, end, name)
		assert.Equal(t, tc.want > 1, last != nil, name)
	}
}
