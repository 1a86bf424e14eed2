package boot

import "context"

// noContext is the error of a call without a context, nil if there is one. Each function of the API
// that takes a context asks.
func noContext(ctx context.Context) *Error {
	if ctx != nil {
		return nil
	}
	return fault(Argument, "the context is nil; context.Background() is one that never ends")
}
