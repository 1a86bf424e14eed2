package launch

import (
	"bytes"
	"regexp"
	"sync"
)

// Voice hears whether a rank has said why it failed: a line of bench that is not one of its log.
type Voice struct {
	mu    sync.Mutex
	part  []byte // of a line whose end is to come
	heard bool
}

// logged are the lines in which ranks report what they saw.
var logged = regexp.MustCompile(`^bench: rank \d+ on \S+: (debug|info|warn|error)`)

func (v *Voice) Write(b []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.part = append(v.part, b...)
	for !v.heard {
		line, rest, whole := bytes.Cut(v.part, []byte("\n"))
		if !whole {
			break
		}
		v.part = rest
		v.heard = bytes.HasPrefix(line, []byte("bench")) && bytes.Contains(line, []byte(": ")) && !logged.Match(line)
	}
	if v.part = v.part[max(len(v.part)-1<<10, 0):]; v.heard {
		v.part = nil
	}
	return len(b), nil
}

// Heard reports whether a rank has.
func (v *Voice) Heard() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.heard
}
