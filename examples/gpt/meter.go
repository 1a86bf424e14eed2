package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"time"
)

// screenEnv tells the ranks of -np which of their outputs a terminal shows, since they write to
// pipes: stdout or stderr.
const screenEnv = "GPT_SCREEN"

// outputs are those that a terminal may show; lines and meter by one way keep their order.
var outputs = []string{"stdout", "stderr"}

func output(name string) *os.File {
	return map[string]*os.File{"stdout": os.Stdout, "stderr": os.Stderr}[name]
}

// watched is the output of this process that a terminal shows, "none" if none does.
func watched() string {
	if name := os.Getenv(screenEnv); name != "" {
		return name
	}
	for _, name := range outputs {
		if terminal(output(name)) {
			return name
		}
	}
	return "none"
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// meter shows on a terminal how far a run is, in a line that the next output takes away.
type meter struct {
	lines  io.Writer // what stays
	screen io.Writer // nil: nobody watches
	now    func() time.Time

	shown  bool
	last   time.Time
	failed error // the first of lines
}

func newMeter(lines io.Writer) *meter {
	m := &meter{lines: lines, now: time.Now}
	if f := output(watched()); f != nil {
		m.screen = f
	}
	return m
}

const erase = "\r\x1b[K"

// Write writes what stays.
func (m *meter) Write(b []byte) (int, error) {
	if m.shown {
		m.shown = false
		io.WriteString(m.screen, erase)
	}
	n, err := m.lines.Write(b)
	m.failed = cmp.Or(m.failed, err)
	return n, err
}

// often is how often the meter changes at most.
const often = 200 * time.Millisecond

// step says that a run from step from on, which began at a time, has done step of steps. A nil meter says nothing.
func (m *meter) step(from, step, steps int, began time.Time) {
	if m == nil || m.screen == nil || step >= steps {
		return
	}
	now := m.now()
	if now.Sub(m.last) < often {
		return
	}
	m.last, m.shown = now, true
	text := fmt.Sprintf("step %d of %d, %d %%", step, steps, 100*int64(step)/int64(steps))
	const enough = 3 // steps to judge by: the first ones are slower
	if done := step - from; done >= enough {
		text += ", " + remaining(time.Duration(float64(now.Sub(began))/float64(done)*float64(steps-step))) + " left"
	}
	io.WriteString(m.screen, erase+text)
}

// remaining is a time for people.
func remaining(d time.Duration) string {
	if d < time.Minute {
		return d.Round(time.Second).String()
	}
	return d.Round(5 * time.Second).String()
}
