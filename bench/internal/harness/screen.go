package harness

import (
	"bytes"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"

	"github.com/goccl/goccl/internal/environ"
)

// passing begins a line that a screen shows until the next one comes. Rank 0 sends
// such lines among its messages, since the process that started it has the screen.
const passing = "\x01"

// screen keeps one passing line below what is written to it.
type screen struct {
	terminal io.Writer

	mu    sync.Mutex
	shown bool
}

func newScreen(terminal io.Writer) *screen { return &screen{terminal: terminal} }

// table is w, for what stays.
func (s *screen) table(w io.Writer) io.Writer {
	return writer(func(p []byte) (int, error) {
		s.clear()
		return w.Write(p)
	})
}

// messages is w, for what stays and for passing lines; it is given whole lines.
func (s *screen) messages(w io.Writer) io.Writer {
	return writer(func(p []byte) (int, error) {
		for line := range bytes.Lines(p) {
			s.clear()
			if text, ok := bytes.CutPrefix(line, []byte(passing)); ok {
				s.show(bytes.TrimSuffix(text, []byte("\n")))
			} else if _, err := w.Write(line); err != nil {
				return 0, err
			}
		}
		return len(p), nil
	})
}

func (s *screen) show(text []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.terminal.Write(text)
	s.shown = true
}

// clear takes the passing line off.
func (s *screen) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shown {
		io.WriteString(s.terminal, "\r\x1b[K")
		s.shown = false
	}
}

type writer func(p []byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// isTerminal reports whether f is a screen.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// columns begins what a rank is told of the screen behind the table; see environ.BenchParent.
const columns = "columns="

// shownOn is how many columns the screen has that rank 0's table is shown on; 0 for a file, a pipe
// or one that does not say.
func shownOn() int {
	for word := range strings.FieldsSeq(environ.BenchParent.Get()) {
		if n, ok := strings.CutPrefix(word, columns); ok {
			wide, _ := strconv.Atoi(n)
			return wide
		}
	}
	if environ.BenchParent.Get() == "" && isTerminal(os.Stdout) {
		return screenColumns(os.Stdout)
	}
	return 0
}
