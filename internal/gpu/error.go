package gpu

import (
	"fmt"

	"github.com/goccl/goccl/internal/lent"
)

// ErrClosed is in the errors of calls on freed memory and on closed streams, events and graphs.
var ErrClosed = lent.ErrClosed

// Error is a failure inside the runtime: its own code and texts.
type Error struct {
	Runtime string // "CUDA"
	Call    string // "cudaMalloc"
	Device  int    // -1: none in particular
	Code    int    // 2
	Name    string // "cudaErrorMemoryAllocation"
	Text    string // "out of memory"
	What    string // was to be done: "4096 bytes"; may be ""
}

// Error reads like: cuda: device 1: cudaMalloc: 4096 bytes: out of memory (cudaErrorMemoryAllocation, 2)
func (e *Error) Error() string {
	s := map[string]string{"CUDA": "cuda: ", "HIP": "rocm: "}[e.Runtime]
	if e.Device >= 0 {
		s += fmt.Sprintf("device %d: ", e.Device)
	}
	s += e.Call + ": "
	if e.What != "" {
		s += e.What + ": "
	}
	return s + fmt.Sprintf("%s (%s, %d)", e.Text, e.Name, e.Code)
}

// check makes an error of a call's result: nil for success. call is the function without its prefix.
func (r *Runtime) check(c code, call string, dev int) error {
	if c == success {
		return nil
	}
	return r.failure(c, call, dev, "")
}

func (r *Runtime) failure(c code, call string, dev int, what string) *Error {
	e := &Error{Runtime: r.name, Call: r.prefix + call, Device: dev, Code: int(c), What: what}
	if c == absent {
		e.Name, e.Text = "not supported", "this version of the library has no such function"
	} else {
		e.Name, e.Text = r.drv.text(c)
	}
	return e
}

// errorf is an error of this package's own, about what the caller did.
func (r *Runtime) errorf(format string, args ...any) error {
	return fmt.Errorf(r.pkg+": "+format, args...)
}
