package gpu

import "fmt"

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

// Check makes an error of a call's result: nil for Success. call is the function without its prefix.
func (r *Runtime) Check(c Code, call string, dev int) error {
	if c == Success {
		return nil
	}
	return r.Failure(c, r.prefix+call, dev, "")
}

// Prefix begins the names of the library's functions: "cuda" or "hip".
func (r *Runtime) Prefix() string { return r.prefix }

// Failure is the error of a function, by its whole name, that was to do what.
func (r *Runtime) Failure(c Code, function string, dev int, what string) *Error {
	e := &Error{Runtime: r.name, Call: function, Device: dev, Code: int(c), What: what}
	if c == Absent {
		e.Name, e.Text = "not supported", "this version of the library has no such function"
	} else {
		e.Name, e.Text = r.Driver.Text(c)
	}
	return e
}

// Errorf makes an error about what the caller did.
func (r *Runtime) Errorf(format string, args ...any) error {
	return fmt.Errorf(r.Package+": "+format, args...)
}
