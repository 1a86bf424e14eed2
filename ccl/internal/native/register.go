//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"fmt"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// lacks is the error of a call that this version does not have.
func (l *library) lacks(call, since string) error {
	return &engine.Lacks{Library: l.Version(), Call: call, Since: l.v.title + " " + since}
}

// Register is ncclCommRegister, and release ncclCommDeregister.
func (e *end) Register(addr uintptr, bytes int) (release func() error, err error) {
	if e.lib.t.CommRegister == nil || e.lib.t.CommDeregister == nil {
		return nil, e.lib.lacks("ncclCommRegister", "2.19")
	}
	var h C.U
	if err := own(e, func() C.int { return C.gcclRegister(e.c, C.U(addr), C.size_t(bytes), &h) }); err != nil {
		return nil, err
	}
	return func() error { return own(e, func() C.int { return C.gcclDeregister(e.c, h) }) }, nil
}

// own makes a call of the rank's own.
func own(e *end, call func() C.int) error {
	if err := e.enter(); err != nil {
		return err
	}
	defer e.inside.Clear()
	return e.result(call())
}

// checkAddresses asks the device runtime whether the addresses of calls are memory of this device, which
// costs some microseconds each.
func checkAddresses(e *end, calls []*op.Call) error {
	for i := range calls {
		src, dst := e.extent(calls[i])
		for _, a := range []struct {
			name  string
			addr  uintptr
			bytes int
		}{{"src", source(calls[i]), src}, {"dst", calls[i].DstAt, dst}} {
			if a.bytes == 0 {
				continue
			}
			if err := e.lib.v.runtime.Owns(e.group.Device, a.addr); err != nil {
				return fmt.Errorf("%s: %s: %w", e.lib.v.name, a.name, err)
			}
		}
	}
	return nil
}
