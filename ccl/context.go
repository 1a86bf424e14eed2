package ccl

import (
	"context"
	"errors"
	"reflect"
)

var errNoContext = errors.New("the context is nil; context.Background() is one that never ends")

// noContext is the error of op on c, which may be no Comm, without a context; nil if there is one.
// Each function of the API that takes a context asks: test/imports checks that.
func noContext(ctx context.Context, c *Comm, op string) error {
	if ctx != nil {
		return nil
	}
	return c.refuse(op, ErrArgument, errNoContext)
}

// absent reports whether b is nil, or a nil pointer, as that of a function which has returned an error.
func absent(b Bootstrap) bool {
	if b == nil {
		return true
	}
	v := reflect.ValueOf(b)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
