package same

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/goccl/goccl/ccl"
)

// grace is how long Fails waits.
const grace = time.Second

// Fails reports whether c fails, and gives it a moment for that: a rank that leaves a call may have
// heard of a loss on another Comm, and c then fails with the better reason.
func Fails(c *ccl.Comm) bool {
	select {
	case <-c.Done():
		return true
	case <-time.After(grace):
		return false
	}
}

// Tick is what Ends counts, up to patience, for a queue of operations; Do counts ten as one. A process that is stopped
// has no ticks. Tests change it.
var Tick = time.Second

const patience = 30

// Ends waits for done, and returns what that has. It gives up after 30 ticks, at each of which moved reports each time
// that nothing was finished since it was asked before: what was given to a disk that answers nothing may never end.
// Without moved nothing is finished before done.
func Ends[T any](tick time.Duration, done <-chan T, moved func() bool) (v T, ended bool) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for idle := 0; idle < patience; idle++ {
		select {
		case v = <-done:
			return v, true
		case <-ticks.C:
		}
		if moved != nil && moved() {
			idle = -1
		}
	}
	return v, false
}

// NoAnswer is the error for a file after Ends has given up, which counted ticks of that length.
func NoAnswer(tick time.Duration, file string) error {
	return fmt.Errorf("no answer for %v: %s: %w", patience*tick, file, os.ErrDeadlineExceeded)
}

// Do does f, which reads or writes a file once. If that does not end in five minutes, in which a parallel file system
// brings another server up, it returns NoAnswer: f goes on, and what it uses is left to it.
func Do(file string, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	tick := 10 * Tick
	if err, ended := Ends(tick, done, nil); ended {
		return err
	}
	return NoAnswer(tick, file)
}

// ReadAt is f's, which Do does.
func ReadAt(f *os.File, b []byte, at int64) (int, error) {
	n := 0
	err := Do(f.Name(), func() (err error) { n, err = f.ReadAt(b, at); return err })
	if errors.Is(err, os.ErrDeadlineExceeded) { // n and b are left to the disk
		return 0, err
	}
	return n, err
}
