package xpu

import (
	"fmt"

	"github.com/goccl/goccl/internal/lent"
)

// ErrClosed is in the errors of calls on freed memory and on closed queues and events.
var ErrClosed = lent.ErrClosed

// OnLeak has f told, from then on, of what the garbage collector finds although it was not given back: what it was, and
// where it was made. GOCCL_LEAKS=1 in the environment logs it.
func OnLeak(f func(text string)) { lent.OnLeak(f) }

// lend accounts for what SYCL has made on d: memory, a queue, an event.
func (d Device) lend(what string, h uintptr, free func(h uintptr) error) *lent.Resource {
	return lent.New("xpu", d.n, what, h, func(h uintptr) error { return on(d.n, free(h)) })
}

// on is err with the device.
func on(dev int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("xpu: device %d: %w", dev, err)
}
