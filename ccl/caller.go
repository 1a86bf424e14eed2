package ccl

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/goccl/goccl/ccl/internal/cpu"
)

// sleeping notes where a blocking call was made. Only calls that have waited for long
// are looked at: it takes longer than a short call does.
func (c *Comm) sleeping(k *cpu.Call) {
	if k == &c.call {
		c.callers[k.Seq%ringCalls] = caller()
	}
}

// caller is the file and line of the nearest caller outside this package.
func caller() string {
	var pc [32]uintptr
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc[:])])
	for {
		f, more := frames.Next()
		name := strings.TrimPrefix(f.Function, "github.com/goccl/goccl/ccl")
		if name == f.Function || !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/internal/") {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
