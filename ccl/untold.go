package ccl

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
)

// What has failed for good, and was given to nobody, is given by the end: Close of the Comm, or of
// the HostStream. Each such failure has one loss, which every Error of it points at. An error
// leaves this package by give: from a blocking call, from Wait and Test, and to a function of
// OnDone. OnFailure and Err do not count: they tell of the Comm, and not of what was asked of it.

// loss is one failure, and what has become of it.
type loss struct {
	met   atomic.Bool // a queued call has ended with it: the program is owed the error
	given atomic.Bool // and has been given it
}

// meet notes that a queued call has ended with it.
func (l *loss) meet() {
	if l != nil {
		l.met.Store(true)
	}
}

// give notes that the program is being given err, and returns it.
func give(err error) error {
	if e, ok := err.(*Error); ok && e.loss != nil {
		e.loss.given.Store(true)
	}
	return err
}

// take is what of errs nobody has been given, as the one error of an end, nil if that is nothing. It is given by that.
func take(errs ...*Error) error {
	errs = slices.DeleteFunc(errs, func(e *Error) bool {
		return e == nil || e.loss != nil &&
			!e.loss.given.CompareAndSwap(false, true)
	})
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	first := *errs[0]
	first.Err = besides{first.Err, errs[1:]}
	return &first
}

// besides is the cause of an error that stands for several.
type besides struct {
	cause error // of the first; may be nil
	more  []*Error
}

// Error reads like: its process ended; and Send: timed out at rank 1: not done after 2s; and 3 more errors
func (b besides) Error() string {
	var text []string
	if b.cause != nil {
		text = append(text, b.cause.Error())
	}
	for i, e := range b.more {
		if i == shownErrors {
			text = append(text, fmt.Sprintf("and %d more", len(b.more)-i))
			break
		}
		text = append(text, "and "+e.Op+": "+e.what())
	}
	return strings.Join(text, "; ")
}

// shownErrors is how many errors the text of one says that has others besides.
const shownErrors = 4

// Unwrap gives the cause and the other errors.
func (b besides) Unwrap() (all []error) {
	if b.cause != nil {
		all = append(all, b.cause)
	}
	for _, e := range b.more {
		all = append(all, e)
	}
	return all
}

// untoldOf are the failures that Close of c returns, unless they have been given: c's own, if that
// is a mismatch, which often Close alone finds, or if a queued call has ended with it; that of a
// queued call which was rejected; and those of messages.
func untoldOf(c *Comm) (errs []*Error) {
	if e := c.life.failure.Load(); e != nil {
		// which has failed with c
		unpassed := slices.ContainsFunc(c.devices.all(), func(d *deviceStream) bool { return !d.idle() })
		if e.Code == ErrMismatch || e.loss.met.Load() || unpassed {
			errs = append(errs, c.backlog.named(e))
		}
	}
	c.backlog.mu.Lock()
	errs = append(errs, c.backlog.ends.reject)
	c.backlog.mu.Unlock()
	return append(errs, c.life.letters.untold(c)...)
}

// callBack calls a function of the program's, as OnFailure, OnCall and those of OnDone are: see calledBack.
func callBack[T any](f func(T), x T) { f(x) }

// calledBack reports whether the calling goroutine is in a function that this package has called:
// by callBack, or one of HostStream.Do. Such a function must not wait for a Close under way, which
// may wait for that function. It is known by the names of the functions that the goroutine is in.
func calledBack() bool {
	var pcs [128]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if name, ours := strings.CutPrefix(f.Function, thisPackage); ours &&
			(name == "callBack[...]" || name == "(*HostStream).work") {
			return true
		}
		if !more {
			return false
		}
	}
}

const thisPackage = "github.com/goccl/goccl/ccl."

// run calls all of them, also if one ends its goroutine (runtime.Goexit).
func (fs callbacks) run(err error) {
	if len(fs) == 0 {
		return
	}
	defer fs[1:].run(err)
	callBack(fs[0], give(err))
}
