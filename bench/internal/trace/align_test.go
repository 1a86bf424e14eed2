package trace

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at is the trace of one rank, a process of its own, whose clock began at born and whose host's clock is off by so much. Its calls
// have the times of the job.
func at(world int, host string, born, off time.Duration, calls ...call) *line {
	l := &line{Version: 1, Job: "j", Comm: "world", ID: "1", Rank: world, Size: 3, World: world, Host: host, PID: 7, Why: "exit"}
	const end = time.Minute
	l.Time, l.Clock = time.Unix(0, 0).Add(end+off), end-born
	for _, c := range calls {
		c.Start, c.End = c.Start-born, c.End-born
		l.Calls = append(l.Calls, c)
	}
	return l
}

// done is a call that has ended.
func done(seq uint64, kind string, start, end time.Duration) call {
	return call{Seq: seq, Kind: kind, Count: 8, Root: -1, State: "complete", Start: start, End: end}
}

// The clocks of hosts are seconds apart; by what their ranks did together they come within what one call leaves open. Where
// nothing contradicts them they are believed.
func TestAlign(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	for _, tc := range []struct {
		name   string
		off    time.Duration // of the second host
		kind   string
		within time.Duration
	}{
		{"alike", 0, "AllReduce", 0},
		{"nearly alike", 3 * ms, "AllReduce", 3 * ms},
		{"three seconds ahead", 3 * s, "AllReduce", 40*ms + coarse},
		{"an hour behind", -time.Hour, "Barrier", 40*ms + coarse},
		{"no call of all", 3 * s, "Broadcast", 3 * s},
	} {
		t.Run(tc.name, func(t *testing.T) {
			jobs := group([]*line{
				at(0, "a", 1*s, 0, done(1, tc.kind, 10*s, 10*s+40*ms), done(2, tc.kind, 12*s, 12*s+5*ms)),
				at(1, "b", 2*s, tc.off, done(1, tc.kind, 10*s+30*ms, 10*s+40*ms), done(2, tc.kind, 12*s, 12*s+5*ms)),
				at(2, "c", 5*s, 0, done(2, tc.kind, 12*s, 12*s+5*ms)),
			})
			require.Len(t, jobs, 1)
			clocks := align(jobs[0])
			require.Len(t, clocks, 3)
			for host, born := range map[string]time.Duration{"a": 0, "b": 1 * s, "c": 4 * s} { // after the first
				wrong := clocks[process{host, 7}] - born
				if host != "b" {
					require.Zero(t, wrong, host)
				} else {
					require.LessOrEqual(t, wrong.Abs(), tc.within)
				}
			}
		})
	}
}

// Calls that cannot be so, and calls of nothing, move no clock far.
func TestAlignContradiction(t *testing.T) {
	const s = time.Second
	empty := done(1, "AllReduce", 100*s, 101*s)
	empty.Count = 0
	for name, calls := range map[string][]call{"nothing": {empty}, "failed": {{Seq: 1, Kind: "Barrier", State: "failed", Start: 100 * s, End: 101 * s}}} {
		clocks := align(group([]*line{at(0, "a", 0, 0, done(1, "AllReduce", 10*s, 11*s)), at(1, "b", 0, 0, calls...)})[0])
		require.Zero(t, clocks[process{"b", 7}], name)
	}
	clocks := align(group([]*line{
		at(0, "a", 0, 0, done(1, "Barrier", 10*s, 11*s), done(2, "Barrier", 20*s, 21*s)),
		at(1, "b", 0, 0, done(1, "Barrier", 20*s, 21*s), done(2, "Barrier", 10*s, 11*s)),
	})[0])
	require.Less(t, clocks[process{"b", 7}].Abs(), time.Minute, fmt.Sprint(clocks))
}
