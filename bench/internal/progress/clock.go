// Package progress estimates how much longer a run takes.
package progress

import "time"

// Clock knows a run as so many curves over the same sizes.
type Clock struct {
	sizes  []int // bytes of each line of a curve
	iters  func(bytes int) int
	curves int             // that are not over
	took   []time.Duration // by line, the last time it was measured; 0: not yet
}

// New makes the clock of a run of so many curves; iters is how many calls a line of
// that many bytes makes.
func New(curves int, sizes []int, iters func(bytes int) int) *Clock {
	return &Clock{sizes: sizes, iters: iters, curves: curves, took: make([]time.Duration, len(sizes))}
}

// Measured notes what the i-th line of a curve took, 0 for one that was left out; the
// last ends the curve.
func (c *Clock) Measured(i int, took time.Duration) {
	if i < 0 || i >= len(c.took) {
		return
	}
	if took > 0 {
		c.took[i] = took
	}
	if i == len(c.took)-1 {
		c.curves--
	}
}

// Left is the time from before the i-th line of a curve to the end of the run; 0 if
// nothing is known yet.
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

// line is what a line takes: what it took, or what it would after the line before it.
func (c *Clock) line(j int) time.Duration {
	if c.took[j] > 0 {
		return c.took[j]
	}
	for k := j; k >= 0; k-- {
		if c.took[k] > 0 {
			perCall := float64(c.took[k]) / float64(max(c.iters(c.sizes[k]), 1))
			grown := float64(half+c.sizes[j]) / float64(half+c.sizes[k])
			return time.Duration(perCall * grown * float64(c.iters(c.sizes[j])))
		}
	}
	return 0
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
