package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What yields have taken decides whether a rank that waits goes on giving way, for how long it does not, and when it tries
// again.
func TestCourtesy(t *testing.T) {
	const (
		us   = time.Microsecond
		ms   = time.Millisecond
		late = 3 * ms
	)
	type yield struct {
		now, took time.Duration
		times     int
	}
	for _, tc := range []struct {
		name   string
		yields []yield
		until  time.Duration // that the rank does not give way before this time
		term   time.Duration
	}{
		{"none", nil, 0, 0},
		{"others give way as well", []yield{{ms, 50 * us, 1000}}, 0, 0},
		{"just not late", []yield{{ms, yieldLate - 1, 1000}}, 0, 0},
		{"late ones", []yield{{5 * ms, late, 3}}, 0, 0},
		{"too many", []yield{{5 * ms, late, 3}, {9 * ms, late, 1}}, 109 * ms, termFirst},
		{"at the limit", []yield{{5 * ms, yieldLate, 4}}, 105 * ms, termFirst},
		{"one that began before the term", []yield{{5 * ms, late, 4}, {8 * ms, late, 9}}, 105 * ms, termFirst},
		{"a few are answered", []yield{{5 * ms, late, 4}, {106 * ms, 20 * us, lateWeight}, {109 * ms, late, 3}}, 309 * ms, 2 * termFirst},
		{"most are answered", []yield{{5 * ms, late, 3}, {6 * ms, 20 * us, 3 * lateWeight}, {9 * ms, late, 3}}, 0, 0},
		{"far between", []yield{{5 * ms, late, 3}, {58*ms + 1, late, 3}}, 0, 0},
		{"not so far", []yield{{5 * ms, late, 3}, {58 * ms, late, 1}}, 158 * ms, termFirst},
		{"after the term, one", []yield{{5 * ms, late, 4}, {108 * ms, late, 1}}, 105 * ms, termFirst},
		{"after the term, two", []yield{{5 * ms, late, 4}, {108 * ms, late, 2}}, 308 * ms, 2 * termFirst},
		{"and again", []yield{{5 * ms, late, 4}, {108 * ms, late, 2}, {311 * ms, late, 2}}, 711 * ms, 4 * termFirst},
		{"long after the term", []yield{{5 * ms, late, 4}, {206 * ms, late, 4}}, 306 * ms, termFirst},
		{"a term has an end", []yield{{5 * ms, late, 4}, {108 * ms, late, 2}, {311 * ms, late, 2}, {714 * ms, late, 2}, {1517 * ms, late, 2}},
			2517 * ms, termMost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var c yielding
			for _, y := range tc.yields {
				for range y.times {
					c.yielded(y.now, y.took, spinsAlone)
				}
			}
			require.Equal(t, tc.until, time.Duration(c.Until.Load()))
			require.Equal(t, tc.term, time.Duration(c.term.Load()))
			require.True(t, c.yields(tc.until))
			if tc.until > 0 {
				require.False(t, c.yields(tc.until-1))
			}
		})
	}
}

// That yields were late is remembered for a while.
func TestLate(t *testing.T) {
	const ms = time.Millisecond
	var c yielding
	c.yielded(ms, yieldAnswered, spinsAlone)
	require.False(t, c.late(ms), "none was")
	c.yielded(2*ms, ms, spinsAlone)
	require.True(t, c.late(3*ms), "one was")
	for range lateWeight {
		c.yielded(4*ms, yieldAnswered, spinsAlone)
	}
	require.False(t, c.late(5*ms), "others were answered since")
	for range doubtsMax / lateWeight {
		c.yielded(9*ms, ms, spinsAlone)
	}
	require.Positive(t, c.Until.Load())
	for range doubtsAgain {
		c.yielded(9*ms+termFirst, yieldAnswered, spinsAlone)
	}
	require.True(t, c.late(9*ms+termFirst+lateFor-1))
	require.False(t, c.late(9*ms+termFirst+lateFor))
}

// Where ranks outnumber cores a yield is late later.
func TestLateYield(t *testing.T) {
	var c yielding
	for range 9 {
		c.yielded(5*time.Millisecond, yieldLateMany-1, SpinsCrowded)
	}
	require.True(t, c.yields(5*time.Millisecond))
	for range 9 {
		c.yielded(5*time.Millisecond, yieldLateMany, SpinsCrowded)
	}
	require.False(t, c.yields(5*time.Millisecond))
}

func TestOthersRun(t *testing.T) {
	for _, tc := range []struct {
		runnable, ranks, processors int
		want                        bool
	}{
		{-1, 1, 1, false}, {8, 8, 2, false}, {9, 8, 2, false}, {10, 8, 2, true}, {3, 1, 1, true}, {2, 1, 1, false},
		{155, 104, 104, false}, {156, 104, 104, true},
	} {
		require.Equal(t, tc.want, othersRun(tc.runnable, tc.ranks, tc.processors), "%+v", tc)
	}
}

// As a term begins, a rank that sleeps is not taken for one of the threads that run. One that has been rung, or whose sleep is
// over, wants a processor.
func TestOthersRunBesideSleepers(t *testing.T) {
	all := ranks(t, 8, Options{})
	c := all[0]
	now := time.Hour
	others := max(2, c.Share.Host.Processors()/2)
	sleep := func(r int, limit time.Duration) {
		c.Share.Local.Rests(r).Store(restsUntil(now, limit))
		c.Share.Local.Bell(r).Store(BellAnyone)
	}
	awake := func(want int, why string) {
		t.Helper()
		require.True(t, c.Standing.othersRun(want+others, now), why)
		require.False(t, c.Standing.othersRun(want+others-1, now), why)
	}
	awake(8, "none sleeps")
	sleep(1, 0)
	sleep(2, time.Millisecond)
	sleep(3, time.Millisecond)
	awake(5, "three sleep")
	require.True(t, c.Share.claimRing(1, true))
	awake(6, "one of them is rung")
	now += time.Millisecond
	awake(8, "the others' time is over")
}

func TestRingsPay(t *testing.T) {
	for _, tc := range []struct {
		ranks, processors int
		want              bool
	}{{2, 2, true}, {4, 2, true}, {5, 2, false}, {2, 1, true}, {3, 1, false}, {104, 104, true}} {
		require.Equal(t, tc.want, ringsPay(tc.ranks, tc.processors), "%d ranks on %d", tc.ranks, tc.processors)
	}
}
