package plane

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLived(t *testing.T) {
	const tick = 5 * time.Millisecond
	var l Lived
	at := time.Now()
	lap := func(after time.Duration) time.Duration {
		at = at.Add(after)
		l.Lap(at)
		return l.Now()
	}
	assert.Equal(t, time.Duration(0), lap(0))
	assert.Equal(t, tick, lap(tick))
	assert.Equal(t, tick+lapMax, lap(lapMax))
	assert.Equal(t, tick+2*lapMax, lap(time.Hour), "a pause")
	assert.Equal(t, tick+2*lapMax, lap(-time.Minute), "a clock that is set back")
	assert.Equal(t, 2*tick+2*lapMax, lap(tick))
}

// A wait ends when what it waits for has come, or once so much time was lived through: while the process stands still, or leaves its
// job, none is.
func TestAwaitLived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, done, never := &Job{}, make(chan struct{}), make(chan struct{})
		j.Time.Lived.Lap(time.Now())
		began := time.Now()
		go func() {
			time.Sleep(time.Hour) // in which nobody moves the clock on
			for range 10 {
				j.Time.Lived.Lap(time.Now()) // the first time it counts lapMax
				time.Sleep(10 * tick)
			}
			close(done)
		}()
		AwaitLived(j, lapMax+20*tick, never)
		assert.Equal(t, time.Hour+20*tick, time.Since(began).Round(10*tick))
		AwaitLived(j, time.Hour, done)
		assert.Less(t, time.Since(began), time.Hour+time.Second)
		AwaitLived(j, time.Hour, done)
		assert.Less(t, time.Since(began), time.Hour+time.Second)
	})
}

// Of a lap that comes late little counts for short waits; of a sleep that was meant, all does.
func TestBrief(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Lived
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
			{0, time.Hour, lapMax, briefMax},
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
		var l Lived
		begin := time.Now()
		assert.Zero(t, l.MissedSince(begin))
		lap := func(after time.Duration) {
			time.Sleep(after)
			l.Lap(time.Now())
		}
		lap(0)
		lap(lapMax)
		assert.Zero(t, l.MissedSince(begin))
		lap(time.Second)
		assert.Equal(t, time.Second-lapMax, l.MissedSince(begin))
		later := time.Now()
		lap(time.Minute)
		assert.Equal(t, time.Minute-lapMax, l.MissedSince(later))
		assert.Equal(t, time.Minute+time.Second-2*lapMax, l.MissedSince(begin))
		assert.Equal(t, time.Second, l.MissedSince(time.Now().Add(-time.Second)), "in the middle of a pause")
		assert.Zero(t, l.MissedSince(time.Now()))
		time.Sleep(time.Hour)
		assert.Equal(t, time.Hour-lapMax, l.MissedSince(time.Now().Add(-time.Hour)), "the monitor has not been there since")
		for range 2 * gapsKept {
			lap(2 * lapMax)
		}
		assert.Equal(t, time.Duration(gapsKept*lapMax), l.MissedSince(begin), "the older ones are forgotten")
	})
}

// Where the monitor sleeps for longer than a tick, all of that is lived through, and nothing of a pause in it.
func TestLivedInLongTicks(t *testing.T) {
	const long = 3 * lapMax
	var l Lived
	at := time.Now()
	l.Lap(at)
	l.SleepsFor(long)
	l.Lap(at.Add(long))
	assert.Equal(t, long, l.Now())
	l.SleepsFor(long)
	l.Lap(at.Add(time.Hour))
	assert.Equal(t, 2*long+lapMax, l.Now())
	l.Lap(at.Add(2 * time.Hour))
	assert.Equal(t, 2*long+2*lapMax, l.Now(), "the sleep after that was a tick")
}

// A long pause is noticed, at once by who asks before the monitor has looked at the clock, and also where the machine slept and the
// clock that counts on with it. It is over at the time lived then. What is shorter than that, or meant, is none.
func TestStood(t *testing.T) {
	const long, tick = 2 * time.Second, 5 * time.Millisecond
	var l Lived
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
	stood(lapMax, true) // the monitor has not been there since
	l = Lived{}
	l.Notice(long)
	stood(0, false)
	l.Lap(at)
	l.Lap(at.Add(long))
	stood(0, false)
	l.Lap(at.Add(2*long + tick))
	stood(2*lapMax, true)
	l.Lap(at.Add(2*long + 2*tick))
	stood(2*lapMax, true)
	l.SleepsFor(time.Hour)
	l.Lap(at.Add(time.Hour))
	stood(2*lapMax, true)

	l = Lived{}
	l.Notice(long)
	slept := at.Round(0) // as if the clock that counts on had stood still
	l.Lap(slept)
	l.Lap(slept.Add(long + tick))
	stood(lapMax, true)
}
