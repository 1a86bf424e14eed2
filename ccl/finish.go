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
