package lived

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

const tick = 5 * time.Millisecond

func TestClock(t *testing.T) {
	var l Clock
	at := time.Now()
	lap := func(after time.Duration) time.Duration {
		at = at.Add(after)
		l.Lap(at)
		return l.Now()
	}
	assert.Equal(t, time.Duration(0), lap(0))
	assert.Equal(t, tick, lap(tick))
	assert.Equal(t, tick+LapMax, lap(LapMax))
	assert.Equal(t, tick+2*LapMax, lap(time.Hour), "a pause")
	assert.Equal(t, tick+2*LapMax, lap(-time.Minute), "a clock that is set back")
	assert.Equal(t, 2*tick+2*LapMax, lap(tick))
}

// Of a lap that comes late little counts for short waits; of a sleep that was meant, all does.
func TestBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Clock
		lap := func(after time.Duration) (now, brief time.Duration) {
			now, brief = l.Now(), l.Brief()
			time.Sleep(after)
			l.Lap(time.Now())
			return l.Now() - now, l.Brief() - brief
		}
		lap(0)
		for _, tc := range []struct{ sleeps, after, now, brief time.Duration }{
			{0, tick, tick, tick},
			{0, 4 * tick, 4 * tick, briefMax},
			{0, time.Hour, LapMax, briefMax},
			{8 * tick, 8 * tick, 8 * tick, 8 * tick},
			{8 * tick, 12 * tick, 12 * tick, 8*tick + briefMax},
		} {
			if tc.sleeps > 0 {
				l.SleepsFor(tc.sleeps)
			}
			now, brief := lap(tc.after)
			assert.Equal(t, []time.Duration{tc.now, tc.brief}, []time.Duration{now, brief}, "%v", tc)
		}
		l.SleepsFor(8 * tick)
		before := l.Brief()
		time.Sleep(3 * tick)
		assert.Equal(t, 3*tick, l.Brief()-before, "it goes on by itself meanwhile")
	})
}

// What a process has missed since a point in time is what of the pauses after it was not lived through, the present one among them.
func TestMissedSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Clock
		begin := time.Now()
		assert.Zero(t, l.MissedSince(begin))
		lap := func(after time.Duration) {
			time.Sleep(after)
			l.Lap(time.Now())
		}
		lap(0)
		lap(LapMax)
		assert.Zero(t, l.MissedSince(begin))
		lap(time.Second)
		assert.Equal(t, time.Second-LapMax, l.MissedSince(begin))
		later := time.Now()
		lap(time.Minute)
		assert.Equal(t, time.Minute-LapMax, l.MissedSince(later))
		assert.Equal(t, time.Minute+time.Second-2*LapMax, l.MissedSince(begin))
		assert.Equal(t, time.Second, l.MissedSince(time.Now().Add(-time.Second)), "in the middle of a pause")
		assert.Zero(t, l.MissedSince(time.Now()))
		time.Sleep(time.Hour)
		assert.Equal(t, time.Hour-LapMax, l.MissedSince(time.Now().Add(-time.Hour)), "the monitor has not been there since")
		for range 2 * gapsKept {
			lap(2 * LapMax)
		}
		assert.Equal(t, time.Duration(gapsKept*LapMax), l.MissedSince(begin), "the older ones are forgotten")
	})
}

// Where the monitor sleeps for longer than a tick, all of that is lived through, and nothing of a pause in it.
func TestClockInLongTicks(t *testing.T) {
	const long = 3 * LapMax
	var l Clock
	at := time.Now()
	l.Lap(at)
	l.SleepsFor(long)
	l.Lap(at.Add(long))
	assert.Equal(t, long, l.Now())
	l.SleepsFor(long)
	l.Lap(at.Add(time.Hour))
	assert.Equal(t, 2*long+LapMax, l.Now())
	l.Lap(at.Add(2 * time.Hour))
	assert.Equal(t, 2*long+2*LapMax, l.Now(), "the sleep after that was a tick")
}

// A long pause is noticed, at once by who asks before the monitor has looked at the clock, and also where the machine slept and the
// clock that counts on with it. It is over at the time lived then. What is shorter than that, or meant, is none.
func TestStood(t *testing.T) {
	const long = 2 * time.Second
	var l Clock
	stood := func(again time.Duration, ever bool) {
		t.Helper()
		got, is := l.Stood()
		assert.Equal(t, ever, is)
		assert.Equal(t, again, got)
	}
	at := time.Now()
	l.Lap(at.Add(-time.Hour))
	stood(0, false) // nobody wants to know
	l.Notice(long)
	stood(LapMax, true) // the monitor has not been there since
	l = Clock{}
	l.Notice(long)
	stood(0, false)
	l.Lap(at)
	l.Lap(at.Add(long))
	stood(0, false)
	l.Lap(at.Add(2*long + tick))
	stood(2*LapMax, true)
	l.Lap(at.Add(2*long + 2*tick))
	stood(2*LapMax, true)
	l.SleepsFor(time.Hour)
	l.Lap(at.Add(time.Hour))
	stood(2*LapMax, true)

	l = Clock{}
	l.Notice(long)
	slept := at.Round(0) // as if the clock that counts on had stood still
	l.Lap(slept)
	l.Lap(slept.Add(long + tick))
	stood(LapMax, true)
}
