package ccl

import "fmt"

// Now is a Stream on which every call runs at once, on the goroutine that issues it: the
// call is over when the Queue's method returns, and its Work is complete. So code that is
// written on Queues costs on it what the blocking functions do, where there is nothing to
// overlap with. A Group runs when it returns. As with any Queue, a rejected call fails the
// Comm. No context ends a call on Now: Options.Timeout, Queue.Within and Abort do.
var Now Stream = nowStream{}

// nowStream is the Stream Now. It has no state: the calling goroutine orders the calls.
type nowStream struct{}

// Handle is 0; it is never closed.
func (nowStream) Handle() (uintptr, bool) { return 0, true }

// callNow makes a call whose arguments are resolved.
func (q *Queue) callNow(a *args) Work {
	c := q.c
	a.later = true
	err := q.with.now(c, a)
	if err == nil {
		return Work{}
	}
	e := err.(*Error) // as all errors of this package
	c.backlog.mu.Lock()
	reject := c.backlog.ends.reject
	c.backlog.mu.Unlock()
	switch {
	case reject != nil:
		return Work{err: reject} // as every Wait after it
	case e.Code == ErrArgument || e.Code == ErrUnsupported:
		return q.rejectedBy(e)
	}
	return Work{err: e}
}

// Do runs f after the calls that were issued before on q's stream: on a [HostStream] as
// [HostStream.Do] does, on [Now] at once. If a call before it has failed, f does not run,
// and Wait returns that failure. The streams of a device run no Go functions: the Work is
// ErrUnsupported, and nothing else happens.
func (q Queue) Do(f func() error) Work {
	switch {
	case q.c == nil:
		return refuseDo(ErrArgument, errZeroQueue)
	case q.err != nil:
		return Work{err: q.err}
	case q.group != nil:
		return refuseDo(ErrArgument, fmt.Errorf("a Group takes only calls of the Comm; pass the function to the Comm's Queue before or after it"))
	case q.dev != nil:
		return refuseDo(ErrUnsupported, fmt.Errorf("a %s cannot run Go functions", typeName(q.dev.s)))
	case q.s != nil:
		return q.s.Do(f)
	case f == nil:
		return refuseDo(ErrArgument, errNilFunction)
	}
	c := q.c
	c.backlog.mu.Lock()
	failed := c.backlog.ends.reject
	c.backlog.mu.Unlock()
	if failed == nil {
		failed = c.life.failure.Load()
	}
	if failed != nil {
		return Work{err: notRun(failed)}
	}
	if err := f(); err != nil {
		return refuseDo(ErrBackend, err)
	}
	return Work{}
}
