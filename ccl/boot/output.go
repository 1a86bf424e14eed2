package boot

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// output is where the lines of several ranks come together.
type output struct {
	mu     sync.Mutex
	open   *lines // whose long line is only half written
	failed error  // the first failure to pass something on
}

// lost is the error for output that could not be passed on, on a full disk for example. It is the cause where ranks
// have failed, too: one that writes more has a broken pipe.
func (o *output) lost() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		return nil
	}
	return fault(System, "what the ranks wrote could not all be passed on: %v", o.failed)
}

// say writes a line of this process itself to to, which may be nil.
func (o *output) say(to io.Writer, format string, args ...any) {
	if to != nil {
		l := &lines{out: o, to: to}
		fmt.Fprintf(l, format+"\n", args...)
		l.flush()
	}
}

// lines passes on what one rank writes, in whole lines. A line in which a carriage return has moved the
// cursor back, such as a progress bar, is passed on as it grows.
type lines struct {
	out    *output
	to     io.Writer
	prefix string
	log    *rankLog // has all of it too, or nil
	rest   []byte   // of a line that has not ended
	live   bool     // that line is passed on as it grows
	back   bool     // what was passed on ended in a carriage return
}

// maxLine is the longest line kept whole. A longer one is passed on in pieces.
const maxLine = 1 << 20

func (l *lines) Write(p []byte) (int, error) {
	if l.log != nil {
		l.log.write(p)
	}
	whole, ready := bytes.LastIndexByte(p, '\n')+1, 0
	if whole > 0 {
		ready = len(l.rest) + whole
	}
	l.live = l.live && whole == 0 || bytes.IndexByte(p[whole:], '\r') >= 0
	l.rest = append(l.rest, p...)
	if l.live || len(l.rest)-ready > maxLine {
		ready = len(l.rest)
	}
	if ready == 0 {
		return len(p), nil
	}
	if err := l.pass(l.rest[:ready]); err != nil {
		return 0, err
	}
	l.rest = append(l.rest[:0], l.rest[ready:]...)
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

// pass writes lines, the last of which need not have ended. The prefix stands where the cursor begins a
// line, and where a carriage return has put it back there.
func (l *lines) pass(text []byte) error {
	l.out.mu.Lock()
	defer l.out.mu.Unlock()
	fresh := l.out.open != l
	var b bytes.Buffer
	if l.out.open != nil && fresh {
		b.WriteByte('\n') // another rank's line is half written
	}
	for line := range bytes.Lines(text) {
		for part := range bytes.SplitAfterSeq(line, []byte{'\r'}) {
			if len(part) == 0 {
				continue
			}
			if fresh || l.back && part[0] != '\n' {
				b.WriteString(l.prefix)
			}
			b.Write(part)
			fresh, l.back = false, part[len(part)-1] == '\r'
		}
		fresh = true
	}
	l.out.open = nil
	if text[len(text)-1] != '\n' {
		l.out.open = l
	}
	_, err := l.to.Write(b.Bytes())
	if l.out.failed == nil {
		l.out.failed = err
	}
	return err
}
