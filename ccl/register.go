package ccl

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/goccl/goccl/internal/engine"
)

// Register tells the library of c's backend of device memory that calls will use again and again,
// so that the network and the peers reach it where it lies, without copies (ncclCommRegister: NCCL
// 2.19, RCCL of ROCm 6.2). b is best a whole allocation. It is local, and needed on no rank: a rank
// registers its own memory, or does not. Like calls, it and release are for the goroutine that uses
// c.
//
// release undoes it. Call it once what has been issued with the memory is done, and before the
// memory is freed; Close, and a failure of c, release everything. Releasing twice does nothing. A
// backend or a version that registers nothing gives ErrUnsupported; on the CPU the memory for fewer
// copies is that of [MakeSlice].
func (c *Comm) Register(ctx context.Context, b Buf) (release func() error, err error) {
	const op = "Register"
	if err := usable(ctx, c, op); err != nil {
		return nil, err
	}
	m, err := memoryOf(c, "registers no memory; MakeSlice makes memory that it uses without copies",
		"registers no memory here")
	if err != nil {
		return nil, c.refuse(op, ErrUnsupported, err)
	}
	if b.count < 0 {
		return nil, c.refuse(op, ErrArgument, b.wrong())
	}
	x, err := b.extent(c.lib)
	if err != nil {
		return nil, c.refuse(op, ErrArgument, err)
	}
	if x.n == 0 {
		return func() error { return nil }, nil
	}
	if !c.life.enter() {
		return nil, c.refuse(op, ErrClosed, nil)
	}
	undo, err := m.Register(x.at, x.n)
	c.life.busy.Clear()
	switch {
	case errors.Is(err, engine.ErrUnsupported):
		return nil, c.refuse(op, ErrUnsupported, err)
	case err != nil:
		return nil, c.refuse(op, ErrBackend, vendorError(err))
	}
	return c.lib.held.add(&registration{c: c, op: op, memory: b, undo: undo}), nil
}

// extent is memory of a device: where it begins, and how many bytes.
type extent struct {
	at uintptr
	n  int
}

// extent is where b lies, in bytes.
func (b *Buf) extent(l *library) (extent, error) {
	x, err := b.deviceArea(l)
	return extent{x.at, x.n * b.typ.Size()}, err
}

// registration keeps memory from being collected or freed while the library knows it.
type registration struct {
	c      *Comm
	op     string
	memory Buf
	window extent // of no bytes if it is none
	undo   func() error
}

// holdings are a library's registrations and windows.
type holdings struct {
	mu  sync.Mutex
	all map[*registration]bool
}

// add is what undoes m.
func (h *holdings) add(m *registration) (release func() error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[*registration]bool{}
	}
	h.all[m] = true
	m.hold(1)
	return m.release
}

// apart is an error if x and a window overlap.
func (h *holdings) apart(x extent) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.all {
		if w := m.window; x.n > 0 && w.at < x.at+uintptr(x.n) && x.at < w.at+uintptr(w.n) {
			return fmt.Errorf("%d bytes at %#x overlap a window of this Comm, %d bytes at %#x: release that first, or use it",
				x.n, x.at, w.n, w.at)
		}
	}
	return nil
}

// take reports whether m is held, which it is no more then.
func (h *holdings) take(m *registration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	held := h.all[m]
	delete(h.all, m)
	return held
}

// end takes all: the library has forgotten them.
func (h *holdings) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.all {
		m.hold(-1)
	}
	h.all = nil
}

// hold counts at memory of MakeDevice what must be undone before it may be freed.
func (m *registration) hold(n int32) {
	if d, ok := m.memory.mem.(interface{ hold(n int32) }); ok {
		d.hold(n)
	}
}

func (m *registration) release() error {
	c := m.c
	if c.life.failure.Load() != nil || !c.life.enter() {
		return nil // Close has the library forget it, or has had
	}
	defer c.life.busy.Clear()
	if !c.lib.held.take(m) {
		return nil
	}
	m.hold(-1)
	if err := m.undo(); err != nil && c.life.failure.Load() == nil {
		return c.refuse(m.op, ErrBackend, vendorError(err))
	}
	return nil
}
