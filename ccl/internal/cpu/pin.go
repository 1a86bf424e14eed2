package cpu

import (
	"errors"
	"runtime"
	"unsafe"

	inject "github.com/goccl/goccl/ccl/internal/fault"
)

// An address in an offer is a number. By the time that another rank of this process makes a pointer of it, the rank that
// has offered it may have left a call that failed, and the collector may have given its memory to something else. So
// ranks of one process give each other pointers, which the collector sees: pins, one for each source and result that can
// be offered in a round of the region. Who leaves a call takes its pins back, and who then looks for one finds none.
// A rank that has found one holds it itself.

type pinned int

const (
	pinSrc pinned = iota
	pinDst
)

// pins are n pointers for those in this process who have mapped the region at a place: the same for all of them.
func (h *host) pins(at place, n int) []unsafe.Pointer {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.maps[at]
	if m.pins == nil {
		m.pins = make([]unsafe.Pointer, n)
	}
	return m.pins
}

// pinOf is where rank r pins what it offers in the round of the call under way.
func (c *Comm) pinOf(r int, what pinned) *unsafe.Pointer {
	slot := c.reach.round & (c.local.depth - 1)
	return &c.reach.pins[(r*int(c.local.depth)+int(slot))*2+int(what)]
}

// pin gives the ranks of this process what this one offers, b, which lies at p, before the round is posted.
func (c *Comm) pin(what pinned, p *span, b []byte) {
	if p.size == 0 && p.at != 0 {
		storePin(c.pinOf(c.me, what), ptr(b))
		c.untidy, c.reach.pinned = true, true
	}
}

// unpin takes back what this rank has given the others in the call that ends.
func (c *Comm) unpin() {
	c.reach.pinned = false
	storePin(c.pinOf(c.me, pinSrc), nil)
	storePin(c.pinOf(c.me, pinDst), nil)
}

// pinnedBy is what rank r of this process has offered in the call under way, nil if it has left the call.
func (c *Comm) pinnedBy(r int, what pinned) unsafe.Pointer { return found(c.pinOf(r, what)) }

// found is what is pinned, nil if it has been taken back.
func found(pin *unsafe.Pointer) unsafe.Pointer {
	inject.At("cpu.touch")
	p := loadPin(pin)
	if inject.On && p != nil {
		inject.At("cpu.touched")
		runtime.KeepAlive(p) // on the stack, where the collector looks at it
	}
	return p
}

var errLeftCall = errors.New("its call has failed")
