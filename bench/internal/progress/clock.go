// Package progress estimates how much longer a run takes.
package progress

import "time"

// Clock knows a run as so many curves over the same sizes.
type Clock struct {
	sizes  []int // bytes of each line of a curve
	iters  func(bytes int) int
	long   time.Duration // that each half of a line is timed for at least; 0: iters calls, and no more
	curves int           // that are not over
	lines  []measured    // by line, the last time it was measured
}

// measured is the time of one line, and of one call in it; 0: not measured yet.
type measured struct{ took, call time.Duration }

// New makes the clock of a run of so many curves; iters is how many calls half a line of that many
// bytes makes, at least where long is how long they go on.
func New(curves int, sizes []int, iters func(bytes int) int, long time.Duration) *Clock {
	return &Clock{sizes: sizes, iters: iters, long: long, curves: curves, lines: make([]measured, len(sizes))}
}

// Measured notes what the i-th line of a curve took, and a call of it, 0 for one that was left out; the
// last ends the curve.
func (c *Clock) Measured(i int, took, call time.Duration) {
	if i < 0 || i >= len(c.lines) {
		return
	}
	if took > 0 {
		c.lines[i] = measured{took, call}
	}
	if i == len(c.lines)-1 {
		c.curves--
	}
}

// Left is the time from before the i-th line of a curve to the end of the run; 0 as long as too little is known to say.
func (c *Clock) Left(i int) time.Duration {
	var here, curve time.Duration
	for j := range c.sizes {
		t := c.line(j)
		if t == 0 {
			return 0
		}
		curve += t
		if j >= i {
			here += t
		}
	}
	return here + time.Duration(max(c.curves-1, 0))*curve
}

// half is the size at which latency and bandwidth count alike, roughly, on any network
// (Hockney's n1/2, 1994): below it calls of all sizes take about the same.
const half = 64 << 10

// far is how many times as large a line may be as the one that it is guessed by: caches end, and protocols change.
const far = 8

// line is the time of line j: measured, or extrapolated from the line before it. It is 0 where neither is known.
func (c *Clock) line(j int) time.Duration {
	for k := j; k >= 0; k-- {
		known := c.lines[k]
		switch {
		case known.took == 0:
			continue
		case k == j:
			return known.took
		}
		grown := float64(half+c.sizes[j]) / float64(half+c.sizes[k])
		call := time.Duration(float64(known.call) * grown)
		if calls := time.Duration(c.iters(c.sizes[j])); grown > far && far*call*calls > c.long {
			return 0
		}
		// Beside the calls that are timed there are those that are checked, or timed singly.
		rest := max(known.took-2*c.timed(c.sizes[k], known.call), 0)
		return 2*c.timed(c.sizes[j], call) + time.Duration(float64(rest)*grown)
	}
	return 0
}

// timed is how long half a line is timed whose calls take so long each.
func (c *Clock) timed(bytes int, call time.Duration) time.Duration {
	return max(c.long, call*time.Duration(c.iters(bytes)))
}

// Text is a time for people: 2m5s, 14s; "" for less than half a second.
func Text(d time.Duration) string {
	if d < time.Second/2 {
		return ""
	}
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(5 * time.Second).String()
}
