//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import "time"

// waits makes a call of the rank's own that may wait for other ranks inside the library. It is on a
// goroutine of its own: where Abort cannot make it come back, which takes ncclCommRevoke (NCCL
// 2.28.7), the caller does, and the call stays inside.
func waits(e *end, call func() C.int) error {
	if err := e.enter(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := e.result(call())
		e.state.And(^away)
		e.inside.Clear()
		done <- err
	}()
	tick := time.NewTicker(checkTick)
	defer tick.Stop()
	for e.state.Load()&aborted == 0 {
		select {
		case err := <-done:
			return err
		case <-tick.C:
		}
	}
	e.state.Or(away) // before the next call of the rank's own, which is refused
	select {
	case err := <-done:
		e.state.And(^away)
		return err
	case <-e.ended:
		return errAborted // the call's end clears away
	}
}
