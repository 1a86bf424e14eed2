package ccl

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
)

// windowAlignment is of the address of a window, as the library wants it (NCCL_WIN_REQUIRED_ALIGNMENT, NCCL 2.28).
const windowAlignment = 4096

// Window makes b, memory of [MakeDevice], a symmetric window of c (ncclCommWindowRegister with
// NCCL_WIN_COLL_SYMMETRIC: NCCL and RCCL 2.27): calls whose buffers lie in windows at equal offsets
// on all ranks reach the peers' memory directly. It is collective, and waits for what was issued
// before. All ranks give memory of the same size, which begins at a multiple of 4,096 bytes; if
// they do not, or what one gives cannot have a window, all get the same error, which names that
// rank, and c goes on. Memory has one window of a Comm at most, on each rank: to NCCL the results
// of calls on two that overlap are undefined.
//
// ErrUnsupported is the error of a backend or version without windows, and, on all ranks, where the
// library makes none on one of them: they take device memory that peers can map.
//
// release closes the window, on this rank alone. Call it once what has been issued with the memory
// is done on all ranks, and before FreeDevice; Close, and a failure of c, close all windows.
// Releasing twice does nothing.
func (c *Comm) Window(ctx context.Context, b Buf) (release func() error, err error) {
	const op = "Window"
	if err := callable(ctx, c, named(op)); err != nil {
		return nil, err
	}
	w, err := memoryOf(c, "makes no windows; MakeSlice makes memory that the ranks of a host share",
		"makes no windows here")
	if err = cmp.Or(err, c.lib.loaded.Windows); err != nil { // Windows is the same on all ranks
		return nil, c.refuse(op, ErrUnsupported, err)
	}
	x, wrong := c.lib.windowOf(b)
	var undo func() error
	err = makeOwn(ctx, c, call.Window, func(k *call.Call) (f *call.Fault) {
		undo, f = openWindow(ctx, c, k, w, x, wrong)
		return f
	})
	switch {
	case err != nil:
		return nil, err
	case undo == nil: // of no bytes
		return func() error { return nil }, nil
	}
	return c.lib.held.add(&registration{c: c, op: op, memory: b, window: x, undo: undo}), nil
}

// windowOf is where b lies, or why it can have no window.
func (l *library) windowOf(b Buf) (extent, error) {
	if b.count < 0 {
		return extent{}, b.wrong()
	}
	x, err := b.extent(l)
	if err != nil {
		return extent{}, err
	}
	if _, ok := b.mem.(interface{ hold(n int32) }); !ok && x.n > 0 {
		return extent{}, fmt.Errorf("a window needs memory from MakeDevice, not a %s", typeName(b.mem))
	}
	if x.at%windowAlignment != 0 {
		return extent{}, fmt.Errorf("the memory begins at %#x, which is not a multiple of %d", x.at, windowAlignment)
	}
	return x, l.held.apart(x)
}

// windowWords are what the ranks tell each other, of 8 bytes: whether something is wrong, the size
// of the memory, and 0.
const windowWords = 3

// openWindow makes the window x, of which wrong is what is wrong, once all ranks agree on it. Its
// undo closes it, and is nil for a window of no bytes.
func openWindow(ctx context.Context, c *Comm, k *call.Call, w engine.Memory, x extent,
	wrong error) (undo func() error, f *call.Fault) {
	n, mine := c.Size(), make([]byte, 8*windowWords)
	mine[0] = bit[byte](wrong != nil)
	binary.LittleEndian.PutUint64(mine[8:], uint64(x.n))
	all := make([]byte, n*len(mine))
	if f := c.eng.Exchange(ctx, k, mine, all); f != nil {
		return nil, f
	}
	size := func(r int) uint64 { return binary.LittleEndian.Uint64(all[r*len(mine)+8:]) }
	for r := range n {
		if all[r*len(mine)] != 0 {
			return nil, refusedOn(ctx, c.eng, k, r, wrong)
		}
	}
	for r := range n {
		if size(r) != size(0) {
			return nil, &call.Fault{Code: call.Argument, Peer: r,
				Err: fmt.Errorf("a window has one size on all ranks: rank 0 has %d bytes, rank %d has %d", size(0), r, size(r))}
		}
	}
	if x.n == 0 {
		return nil, nil
	}
	if undo, f = insideWindow(ctx, c, w, x); f != nil {
		return nil, f
	}
	return undo, keepWindow(ctx, c, k, undo)
}

// insideWindow has the library make the window. One rank may fail in it, and then the others wait:
// so such a failure is the Comm's.
func insideWindow(ctx context.Context, c *Comm, w engine.Memory, x extent) (undo func() error, f *call.Fault) {
	err := c.lib.end.Waits(ctx, func() (err error) {
		undo, err = w.Window(x.at, x.n)
		return err
	})
	if err != nil {
		vendorFails(c, err)
		return nil, c.eng.Failure()
	}
	return undo, nil
}

// keepWindow has all ranks keep the window that undo closes, or none; undo is nil where the library has made none.
func keepWindow(ctx context.Context, c *Comm, k *call.Call, undo func() error) *call.Fault {
	mine, all := []byte{bit[byte](undo != nil)}, make([]byte, c.Size())
	if f := c.eng.Exchange(ctx, k, mine, all); f != nil {
		return f
	}
	for r, has := range all {
		if has != 0 {
			continue
		}
		if undo != nil {
			if err := undo(); err != nil {
				vendorFails(c, err)
				return c.eng.Failure()
			}
		}
		return &call.Fault{Code: call.Unsupported, Peer: r,
			Err: fmt.Errorf("%s makes no symmetric window on rank %d: the devices of all ranks must be able to map each other's memory, and NCCL_CUMEM_ENABLE must not be 0", c.Library(), r)}
	}
	return nil
}
