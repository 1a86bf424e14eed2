package ccl

import (
	"errors"
	"fmt"
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
	if e == nil || err == nil || *err != nil && repeats(e, *err, c.life.lost) {
		return
	}
	*err = errors.Join(*err, e)
}

// repeats reports whether e, which the Close of a Comm has returned, says nothing beside a function's error: it is the
// Comm's failure alone, which lost is about, and the function has it already or has caused it.
func repeats(e, function error, lost *loss) bool {
	var last *Error
	if !errors.As(e, &last) || last.loss != lost {
		return false
	}
	_, several := last.Err.(besides)
	return !several && (errors.Is(function, last.Code) || last.Code == ErrAborted && last.Peer == last.Rank)
}
