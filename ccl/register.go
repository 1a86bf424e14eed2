package ccl

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/internal/engine"
)

// Register tells the library of c's backend of device memory that calls will use again and again, so that the network and
// the peers reach it where it lies, without copies (ncclCommRegister: NCCL 2.19, RCCL of ROCm 6.2). b is best a whole
// allocation. It is local, and needed on no rank: a rank registers its own memory, or does not. Like calls, it and release
// are for the goroutine that uses c.
//
// release undoes it. Call it once what has been issued with the memory is done, and before the memory is freed; Close, and
// a failure of c, release everything. Releasing twice does nothing. A backend or a version that registers nothing gives
// ErrUnsupported; on the CPU the memory for fewer copies is that of [MakeSlice].
func (c *Comm) Register(ctx context.Context, b Buf) (release func() error, err error) {
	const op = "Register"
	if c.none() {
		return nil, refuseNone(op)
	}
	c.calls++
	refuse := func(code Code, err error) (func() error, error) {
		return nil, c.named(&Error{Code: code, Op: op, Rank: c.Rank(), Peer: -1, Err: err})
	}
	if c.shut() {
		return refuse(ErrClosed, whyShut())
	}
	if err := c.Err(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return refuse(waitError(err).Code, err)
	}
	if c.lib == nil || c.lib.device < 0 {
		return refuse(ErrUnsupported, errors.New("the backend "+c.Backend()+" registers no memory: MakeSlice makes what it needs no copies of"))
	}
	r, ok := c.lib.Engine.(engine.Registrar)
	if !ok {
		return refuse(ErrUnsupported, errors.New(c.Library()+" registers no memory here"))
	}
	if b.count < 0 {
		return refuse(ErrArgument, errors.New("a Buf.From was out of bounds"))
	}
	x, err := b.on(c.lib)
	if err != nil {
		return refuse(ErrArgument, err)
	}
	if x.n == 0 {
		return func() error { return nil }, nil
	}
	if !c.enter() {
		return refuse(ErrClosed, nil)
	}
	handle, err := r.Register(x.at, x.n)
	c.leave()
	if err != nil {
		var lacks *engine.Lacks
		if errors.As(err, &lacks) {
			return refuse(ErrUnsupported, err)
		}
		return refuse(ErrBackend, vendorError(err))
	}
	m := &registration{c: c, in: r, memory: b, handle: handle}
	if c.lib.registered == nil {
		c.lib.registered = map[*registration]bool{}
	}
	c.lib.registered[m] = true
	return m.release, nil
}

// registration keeps memory from being collected while the library knows it.
type registration struct {
	c      *Comm
	in     engine.Registrar
	memory Buf
	handle uintptr
}

func (m *registration) release() error {
	c := m.c
	if !c.lib.registered[m] {
		return nil
	}
	delete(c.lib.registered, m)
	if c.failure.Load() != nil || !c.enter() {
		return nil // the library has forgotten it, or will
	}
	defer c.leave()
	if err := m.in.Deregister(m.handle); err != nil && c.failure.Load() == nil {
		return c.named(&Error{Code: ErrBackend, Op: "Register", Rank: c.Rank(), Peer: -1, Err: vendorError(err)})
	}
	return nil
}
