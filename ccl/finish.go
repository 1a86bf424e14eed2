package ccl

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// Finish ends what a function does with c. Defer it in the function that made c:
//
//	func run(ctx context.Context) (err error) {
//		c, err := ccl.Join(ctx, nil)
//		if err != nil {
//			return err
//		}
//		defer c.Finish(&err)
//
// If the function returns an error, or panics, Finish aborts c with that as the cause, so that the
// other ranks learn why this one goes; then the panic goes on. It closes c, and joins the error of
// Close to the function's: what only Close knows, such as a mismatch of the last call or a queued
// call that has failed, is not lost. Of several Comms, defer each after it is made.
func (c *Comm) Finish(err *error) {
	p := recover()
	switch {
	case c.isNil():
	case p != nil:
		c.Abort(fmt.Errorf("panic%s: %v", unwound("runtime.gopanic"), p))
	case err != nil && *err != nil:
		c.Abort(*err)
	}
	e := c.Close()
	if p != nil {
		panic(p)
	}
	var last *Error
	switch {
	case e == nil || err == nil:
		return
	case errors.As(e, &last) && errors.Is(*err, last.Code): // the function has it already
		return
	case *err != nil && last != nil && last.Code == ErrAborted && last.Peer == last.Rank: // by the function's own error
		return
	}
	*err = errors.Join(*err, e)
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
