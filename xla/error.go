package xla

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/lent"
)

// ErrClosed is in the errors of calls on what was freed, closed or donated.
var ErrClosed = lent.ErrClosed

// ErrOutOfMemory is in the errors of calls for which the device has no memory.
var ErrOutOfMemory = errors.New("out of memory")

// Error is a failure inside XLA: what was to be done, and XLA's own code and text.
type Error struct {
	Op   string // "compile"
	What string // what was asked for: "f32[1024,768]"; may be ""
	Code int    // PJRT's: 3 is an invalid argument, 8 means that something is exhausted
	Text string // XLA's
}

// Error reads like: xla: compile: main.go's program: Unknown command line flag (code 3)
func (e *Error) Error() string {
	s := "xla: " + e.Op + ": "
	if e.What != "" {
		s += e.What + ": "
	}
	return fmt.Sprintf("%s%s (code %d)", s, e.Text, e.Code)
}

// Is makes an Error with the code for it an ErrOutOfMemory.
func (e *Error) Is(target error) bool { return target == ErrOutOfMemory && e.Code == resourceExhausted }

const resourceExhausted = 8

// failure makes an Error of the text that the C code returns, "8: Out of memory"; "" is no error.
func failure(op, what, text string) error {
	if text == "" {
		return nil
	}
	code, rest, ok := strings.Cut(text, ": ")
	n, err := strconv.Atoi(code)
	if !ok || err != nil {
		n, rest = 0, text
	}
	return &Error{Op: op, What: what, Code: n, Text: strings.TrimSpace(rest)}
}

// Unavailable says why there is no XLA in this process.
type Unavailable struct {
	Reason string
	Err    error // the cause, if there is one apart from Reason
}

func (e *Unavailable) Error() string { return e.Reason }
func (e *Unavailable) Unwrap() error { return e.Err }

// unavailable makes one.
func unavailable(format string, args ...any) error {
	err := fmt.Errorf("xla: "+format, args...)
	return &Unavailable{Reason: err.Error(), Err: errors.Unwrap(err)}
}
