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

// callers are where the last blocking calls were made that have waited for long. Only those are looked at: it takes
// longer than a short call does.
type callers struct {
	mu     sync.Mutex
	slept  [ringCalls]uint64 // the calls whose stacks are known
	newest uint64            // the last of them
	stacks *[ringCalls]stack
	shown  shownPlace
}

// shownPlace is the place that was told last. A program that waits again and again does so in few places, and the monitor
// allocates nothing to tell the same one again.
type shownPlace struct {
	at   stack
	text string
}

// engineFrames are above the program's in the stack of a call that goes to sleep: Callers, note, its caller in newComm,
// and three of the engine.
const engineFrames = 6

// note keeps where call seq, which its goroutine is in, was made.
func (c *callers) note(seq uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil {
		c.stacks = new([ringCalls]stack)
	}
	s := &c.stacks[seq%ringCalls]
	*s = stack{}
	runtime.Callers(engineFrames, s[:])
	c.slept[seq%ringCalls] = seq
	c.newest = seq
}

// last is where the call that slept last was made.
func (c *callers) last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil {
		return ""
	}
	at := &c.stacks[c.newest%ringCalls]
	if *at != c.shown.at {
		c.shown = shownPlace{*at, placeOf(at)}
	}
	return c.shown.text
}

// of is the file and line of the nearest caller of call seq outside this package, where it is known.
func (c *callers) of(seq uint64) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stacks == nil || c.slept[seq%ringCalls] != seq {
		return ""
	}
	return placeOf(&c.stacks[seq%ringCalls])
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

// placed is e, the error of the blocking call that the calling goroutine is in, with the place of the call.
func placed(e *Error) *Error {
	if e.Mine != nil && e.Mine.Caller == "" && !e.earlier {
		e.Mine.Caller = here()
	}
	return e
}

// lineOf is a place as people and editors find it: the folder of its package, the file and the line.
func lineOf(f runtime.Frame) string {
	file := filepath.ToSlash(f.File)
	return fmt.Sprintf("%s/%s:%d", path.Base(path.Dir(file)), path.Base(file), f.Line)
}
