package ccl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/plain"
)

// vote is how the ranks of a new Comm agree on its library: by a handful of small collectives over the
// CPU engine, O(log n) each.
type vote struct {
	ctx context.Context
	eng *cpu.Comm
}

// textBytes is how much of an error is passed on to the other ranks.
const textBytes = 2 << 10

func (t vote) run(kind op.Kind, typ Type, o Op, dst, src []byte) error {
	a := args{kind: kind, typ: typ, op: o, root: noRoot}
	if kind == op.Broadcast {
		a.root = 0
	}
	var k call.Call
	a.kernels(&k, nil)
	k.Dst, k.Src, k.Count = dst, src, uint64(min(len(dst), len(src))/max(k.Elem, 1)) // AllGather counts what a rank gives
	k.Seal()
	return t.eng.Run(t.ctx, []*call.Call{&k})
}

// min is the least of what all ranks say, number by number.
func (t vote) min(x []int64) error {
	b := bytesOf(x)
	return t.run(op.AllReduce, TypeInt64, Min, b, b)
}

// broadcast gives all ranks what rank 0 has in b.
func (t vote) broadcast(b []byte) error {
	return t.run(op.Broadcast, TypeUint8, Sum, b, b)
}

// verdict is nil on all ranks where err is nil on all, and otherwise the error of the lowest
// rank that has one, as a Fault that names it.
func (t vote) verdict(err error) *call.Fault {
	n := int64(t.eng.Size())
	who := []int64{n}
	if err != nil {
		who[0] = int64(t.eng.Rank())
	}
	if e := t.min(who); e != nil {
		return faultOf(e)
	}
	if who[0] == n {
		return nil
	}
	// Rank who tells rank 0, which tells all: a broadcast from any root would do, but the
	// reduction needs no second kind of schedule. The largest byte wins, and the other ranks send zeros.
	text := make([]byte, textBytes)
	if int64(t.eng.Rank()) == who[0] {
		s := err.Error()
		binary.LittleEndian.PutUint16(text, uint16(copy(text[3:], s)))
		text[2] = byte(codeOf(err, ErrBackend))
	}
	if e := t.run(op.AllReduce, TypeUint8, Max, text, text); e != nil {
		return faultOf(e)
	}
	if int64(t.eng.Rank()) == who[0] {
		return &call.Fault{Code: call.Code(codeOf(err, ErrBackend)), Peer: t.eng.Rank(), Err: vendorError(err)}
	}
	size := min(int(binary.LittleEndian.Uint16(text)), textBytes-3)
	return &call.Fault{Code: call.Code(text[2]), Peer: int(who[0]),
		Err: fmt.Errorf("rank %d: %s", who[0], plain.Text(string(text[3:3+size])))}
}

// giveUp tells the others that this rank does not come, since err.
func (t vote) giveUp(err error) {
	var f *call.Fault
	switch {
	case errors.As(err, &f):
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		f = call.CtxFault(err, t.eng.Rank(), nil)
	default:
		f = &call.Fault{Code: call.Code(codeOf(err, ErrBackend)), Peer: t.eng.Rank(), Own: true, Err: vendorError(err)}
	}
	t.eng.Fail(f)
}

// faultOf is the Fault that err is, or wraps, or one of the backend; nil if there is no error.
func faultOf(err error) *call.Fault {
	if err == nil {
		return nil
	}
	var f *call.Fault // which takes memory
	if errors.As(err, &f) {
		return f
	}
	return &call.Fault{Code: call.Backend, Peer: -1, Err: err}
}

// vendorError is err with what a library said as a *VendorError.
func vendorError(err error) error {
	var l *engine.LibraryError
	if err == nil || !errors.As(err, &l) {
		return err
	}
	return &VendorError{Library: l.Library, Result: l.Result, Text: l.Call + ": " + l.Text}
}

// bit is 1 if x is true, as ranks tell each other.
func bit[T uint8 | int | int64 | uint64](x bool) T {
	if x {
		return 1
	}
	return 0
}
