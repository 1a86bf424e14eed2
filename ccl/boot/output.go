package boot

import (
	"bytes"
	"io"
	"sync"
)

// output is where the lines of several ranks come together.
type output struct {
	mu   sync.Mutex
	open *lines // whose long line is only half written
}

// lines passes on what one rank writes, in whole lines.
type lines struct {
	out    *output
	to     io.Writer
	prefix string
	rest   []byte // of a line that has not ended
}

// maxLine is the longest line kept whole. A longer one is passed on in pieces.
const maxLine = 1 << 20

func (l *lines) Write(p []byte) (int, error) {
	whole := bytes.LastIndexByte(p, '\n') + 1
	if whole > 0 {
		if err := l.pass(append(l.rest, p[:whole]...)); err != nil {
			return 0, err
		}
		l.rest = l.rest[:0]
	}
	l.rest = append(l.rest, p[whole:]...)
	if len(l.rest) > maxLine {
		if err := l.pass(l.rest); err != nil {
			return 0, err
		}
		l.rest = l.rest[:0]
	}
	return len(p), nil
}

// flush ends a last line that the rank has not ended.
func (l *lines) flush() {
	if len(l.rest) > 0 || l.isOpen() {
		l.pass(append(l.rest, '\n'))
		l.rest = nil
	}
}

func (l *lines) isOpen() bool {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	return l.out.open == l
}

// pass writes lines, the last of which need not have ended.
func (l *lines) pass(text []byte) error {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	fresh := l.out.open != l
	var b bytes.Buffer
	if l.out.open != nil && fresh {
		b.WriteByte('\n') // another rank's line is half written
	}
	for line := range bytes.Lines(text) {
		if fresh {
			b.WriteString(l.prefix)
		}
		b.Write(line)
		fresh = true
	}
	l.out.open = nil
	if text[len(text)-1] != '\n' {
		l.out.open = l
	}
	_, err := l.to.Write(b.Bytes())
	return err
}
