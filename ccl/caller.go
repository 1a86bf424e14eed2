package ccl

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
)

// stack is where a call was made, as program counters: to read them takes memory and
// time, which only those spend who ask.
type stack [16]uintptr

// sleeping notes where a blocking call was made. Only calls that have waited for long
// are looked at: it takes longer than a short call does.
func (c *Comm) sleeping(k *call.Call) {
	if k != &c.call {
		return
	}
	c.naps.Lock()
	defer c.naps.Unlock()
	if c.stacks == nil {
		c.stacks = new([ringCalls]stack)
	}
	s := &c.stacks[k.Seq%ringCalls]
	*s = stack{}
	runtime.Callers(5, s[:]) // Callers, sleeping, and three of the engine are above
	c.slept[k.Seq%ringCalls] = k.Seq
	c.sleptLast = k.Seq
}

// lastCaller is where the call that slept last was made.
func (c *Comm) lastCaller() string {
	c.naps.Lock()
	last := c.sleptLast
	c.naps.Unlock()
	return c.caller(last)
}

// caller is the file and line of the nearest caller of call seq outside this package,
// where it is known.
func (c *Comm) caller(seq uint64) string {
	c.naps.Lock()
	defer c.naps.Unlock()
	if c.stacks == nil || c.slept[seq%ringCalls] != seq {
		return ""
	}
	frames := runtime.CallersFrames(c.stacks[seq%ringCalls][:])
	for {
		f, more := frames.Next()
		name := strings.TrimPrefix(f.Function, "github.com/goccl/goccl/ccl")
		if f.Line > 0 && (name == f.Function || !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/internal/")) {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
