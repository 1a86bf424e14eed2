package ccl

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

// stack is where a call was made, as program counters: to read them takes memory and
// time, which only those spend who ask.
type stack [16]uintptr

// callers are where the last calls were made: queued ones, and blocking ones that have waited for
// long. Of those only they are looked at: it takes longer than a short call does.
type callers struct {
	mu     sync.Mutex
	made   *[ringCalls]origin // nil while none is known
	newest uint64             // the last of them that slept
	shown  shownPlace
	fixed  *string // of the blocking call under way
}

// origin is where a call was made.
type origin struct {
	seq   uint64 // the call's
	at    stack
	given *string // in place of a stack: what Queue.From says
}

// shownPlace is the place that was told last. A program that waits again and again does so in few
// places, and the monitor allocates nothing to tell the same one again.
type shownPlace struct {
	at   stack
	text string
}

// engineFrames are above the program's in the stack of a call that goes to sleep: Callers, note, its caller in newComm,
// and five of the engine.
const engineFrames = 8

// note keeps where call seq, which its goroutine is in, was made.
func (c *callers) note(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o := c.origin(seq, c.fixed)
	if o.at = (stack{}); c.fixed == nil {
		runtime.Callers(engineFrames, o.at[:])
	}
	c.newest = seq
}

// origin is that of call seq, which has such a place, nil if its stack is to say. The caller holds c.mu.
func (c *callers) origin(seq uint64, place *string) *origin {
	if c.made == nil {
		c.made = new([ringCalls]origin)
	}
	o := &c.made[seq%ringCalls]
	o.seq, o.given = seq, place
	return o
}

// fix says where the blocking calls are made that follow, nil if their stacks say.
func (c *callers) fix(place *string) {
	c.mu.Lock()
	c.fixed = place
	c.mu.Unlock()
}

// here is where the blocking call under way was made.
func (c *callers) here() string {
	c.mu.Lock()
	fixed := c.fixed
	c.mu.Unlock()
	if fixed != nil {
		return *fixed
	}
	return here()
}

// queueFrames are above the program's in the stack of a call that is queued: Callers, queued,
// issue, and the method of Queue.
const queueFrames = 4

// queued keeps where call seq, which its goroutine is about to queue, is made: at that place, or
// where its stack says if that is nil. Two frames do, and take less time than all.
func (c *callers) queued(seq uint64, place *string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.origin(seq, place); place == nil {
		clear(o.at[runtime.Callers(queueFrames, o.at[:2]):])
	}
}

// last is where the call that slept last was made.
func (c *callers) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil {
		return ""
	}
	o := &c.made[c.newest%ringCalls]
	if o.given != nil {
		return *o.given
	}
	if o.at != c.shown.at {
		c.shown = shownPlace{o.at, placeOf(&o.at)}
	}
	return c.shown.text
}

// of is the file and line of the nearest caller of call seq outside this package, where it is known.
func (c *callers) of(seq uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.made == nil || c.made[seq%ringCalls].seq != seq {
		return ""
	}
	o := &c.made[seq%ringCalls]
	if o.given != nil {
		return *o.given
	}
	return placeOf(&o.at)
}

// placeOf is the file and line of the nearest caller outside this package.
func placeOf(s *stack) string {
	frames := runtime.CallersFrames(s[:])
	for {
		f, more := frames.Next()
		name := strings.TrimPrefix(f.Function, "github.com/goccl/goccl/ccl")
		if f.Line > 0 && (name == f.Function || !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/internal/")) {
			return lineOf(f)
		}
		if !more {
			return ""
		}
	}
}

// lineOf is a place as people and editors find it: the folder of its package, the file and the line.
func lineOf(f runtime.Frame) string {
	file := filepath.ToSlash(f.File)
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(file)), path.Base(file), f.Line)
}

// unwinding is why the calling goroutine is leaving its functions, if that is no return: a panic,
// or runtime.Goexit. A deferred function that closes a Comm runs then as well.
func unwinding() error {
	if at := unwound("runtime.gopanic"); at != "" {
		return fmt.Errorf("it was closed in a panic%s", at)
	}
	if at := unwound("runtime.Goexit"); at != "" {
		return fmt.Errorf("it was closed while its goroutine ended%s, by runtime.Goexit", at)
	}
	return nil
}

// unwound reads like " at llm/train.go:88", the place of the program from which by, a function of
// package runtime, leaves the functions of the calling goroutine. It is empty where by does not.
func unwound(by string) string {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	found := false
	for {
		f, more := frames.Next()
		switch {
		case f.Function == by:
			found = true
		case found && f.Line > 0 && !strings.HasPrefix(f.Function, "runtime.") && !strings.HasPrefix(f.Function, "testing."):
			return " at " + lineOf(f)
		}
		if !more {
			return ""
		}
	}
}
