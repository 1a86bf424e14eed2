//go:build cgo && unix

package main

/*
#define GOCCL_TYPES_ONLY
#include "goccl.h"
*/
import "C"

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl/internal/op"
)

// args are the fields of a goccl_args that have a meaning for its kind, on this rank. The others are
// zero: what they hold may be anything, an address too, and is looked at nowhere.
type args struct {
	kind       op.Kind
	typ, op    C.int32_t
	root, to   int
	inPlace    bool
	dst, src   unsafe.Pointer // nil of no elements
	dstN, srcN int
	dc, sc     []int
	factor     float64
	place      string
}

// Sets of kinds, by bits: what they have of goccl_args.
const (
	noDst     = 1<<op.Send | 1<<op.Barrier
	noSrc     = 1<<op.Broadcast | 1<<op.Recv | 1<<op.Barrier
	dstAtRoot = 1<<op.Reduce | 1<<op.Gather | 1<<op.GatherV
	srcAtRoot = 1<<op.Scatter | 1<<op.ScatterV
	dstCounts = 1<<op.AllGatherV | 1<<op.GatherV | 1<<op.AllToAllV
	srcCounts = 1<<op.ReduceScatterV | 1<<op.ScatterV | 1<<op.AllToAllV
)

func isKind(k C.int32_t) bool { return k >= C.GOCCL_ALL_REDUCE && k <= C.GOCCL_BARRIER }

func isOp(o C.int32_t) bool { return o >= 0 && o <= C.GOCCL_BXOR || o == C.GOCCL_MULSUM }

// read makes a of k, the only place that looks at a goccl_args of goccl_call.
func (a *args) read(k *C.goccl_args, rank, size int) error {
	if !isKind(k.kind) {
		return fmt.Errorf("there is no kind %d", int32(k.kind))
	}
	a.kind, a.place = op.Kind(k.kind), text(k.place)
	has := func(kinds int) bool { return kinds>>a.kind&1 != 0 }
	if a.kind.Rooted() || a.kind.Pairwise() {
		if a.root = int(k.root); a.root < 0 || a.root >= size {
			return op.NoRank(a.kind, a.root, size)
		}
	}
	if a.kind == op.SendRecv {
		if a.to = int(k.to); a.to < 0 || a.to >= size {
			return op.NoRank(a.kind, a.to, size)
		}
	}
	if a.kind.Reduces() {
		if a.op = k.op; !isOp(a.op) {
			return fmt.Errorf("there is no operator %d", int32(a.op))
		}
		if a.op == C.GOCCL_MULSUM {
			a.factor = float64(k.factor)
		}
	}
	if a.kind.Dataless() {
		return nil
	}
	if a.typ = k._type; a.typ <= 0 || a.typ > C.GOCCL_COMPLEX128 {
		return fmt.Errorf("there is no type %d", int32(a.typ))
	}
	takesSrc := !has(noSrc) && (!has(srcAtRoot) || rank == a.root)
	a.inPlace = takesSrc && !has(noDst) && k.flags&C.GOCCL_IN_PLACE != 0
	var err error
	if !has(noDst) && (!has(dstAtRoot) || rank == a.root || a.inPlace) {
		if a.dst, a.dstN, err = memory("dst", a.typ, &k.dst, k.dst_n); err != nil {
			return err
		}
	}
	if takesSrc && !a.inPlace {
		if a.src, a.srcN, err = memory("src", a.typ, (*unsafe.Pointer)(unsafe.Pointer(&k.src)), k.src_n); err != nil {
			return err
		}
	}
	if has(dstCounts) {
		a.dc = countsOf(k.dst_counts, size)
	}
	if has(srcCounts) {
		a.sc = countsOf(k.src_counts, size)
	}
	return nil
}

// memory is where n elements lie that C says are at *at. That may be no address: as a pointer, Go would
// look at it.
func memory(name string, typ C.int32_t, at *unsafe.Pointer, n C.uint64_t) (unsafe.Pointer, int, error) {
	if n == 0 {
		return nil, 0, nil
	}
	address := *(*uintptr)(unsafe.Pointer(at))
	elem := uint64(op.Type(typ).Size())
	if address < 4096 || uint64(n) > math.MaxInt/elem || uint64(n)*elem > uint64(math.MaxUint-uint64(address)) {
		return nil, 0, fmt.Errorf("%s is %d elements at %#x", name, uint64(n), address)
	}
	return *at, int(n), nil
}

// countsOf are counts of C's.
func countsOf(p *C.int64_t, n int) []int {
	if p == nil {
		return nil
	}
	r := make([]int, n)
	for i, x := range unsafe.Slice((*int64)(unsafe.Pointer(p)), n) {
		r[i] = int(x)
		if int64(r[i]) != x { // of a machine with words of 32 bits
			r[i] = -1
		}
	}
	return r
}
