package proc

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestStarved(t *testing.T) {
	const ms = time.Millisecond
	before := Threads{1: {Ran: 5 * ms, Waited: 5 * ms, Ready: true}, 2: {Ran: 7 * ms, Waited: 7 * ms}, 3: {Ran: 50 * ms, Waited: 100 * ms}}
	for _, tc := range []struct {
		name string
		now  Threads
		want time.Duration
	}{
		{"stopped, or asleep", Threads{1: {5 * ms, 5 * ms, false}, 2: {7 * ms, 7 * ms, false}}, 0},
		{"two waited and ran", Threads{1: {6 * ms, 8 * ms, false}, 2: {8 * ms, 17 * ms, false}}, 10 * ms},
		{"one ran, and waits again", Threads{1: {6 * ms, 8 * ms, true}, 2: {8 * ms, 17 * ms, false}}, 99 * ms},
		{"one waited, also before", Threads{2: {8 * ms, 1007 * ms, true}}, 100 * ms},
		{"one waits, and has not run", Threads{1: {5 * ms, 5 * ms, true}}, 100 * ms},
		{"one is ready now, and slept", Threads{2: {7 * ms, 7 * ms, true}}, 0},
		{"one ran all the time", Threads{1: {105 * ms, 5 * ms, true}}, 0},
		{"one is new", Threads{4: {0, 3 * ms, true}}, 0},
		{"another has the number of one that ended", Threads{3: {1, 200 * ms, true}}, 0},
		{"the kernel says nothing", nil, 0},
	} {
		assert.Equal(t, tc.want, tc.now.Starved(before, 100*ms), tc.name)
	}
	assert.Zero(t, before.Starved(nil, ms), "there was no look before")
}
