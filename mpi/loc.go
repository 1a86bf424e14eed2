package mpi

import (
	"context"
	"math"
	"runtime"
	"sync"
	"unsafe"
)

// Loc is a value and where it is: a rank, or an index.
type Loc[T Number] struct {
	Value T
	Index int
}

// MaxLoc finds element by element the greatest value that the ranks have in src, and its Index: of
// equal values the lowest. All ranks get it in dst. In place: dst and src are one slice. The
// slowest rank and its time:
//
//	at := []mpi.Loc[float64]{{seconds, c.Rank()}}
//	err := mpi.MaxLoc(ctx, c, at, at)
//
// -0 counts as 0. A NaN is greater than all other values, so MaxLoc finds it, and MinLoc passes over it.
func MaxLoc[T Number](ctx context.Context, c *Comm, dst, src []Loc[T]) error {
	return place(ctx, c, "MaxLoc", dst, src, 0)
}

// MinLoc is MaxLoc for the least value.
func MinLoc[T Number](ctx context.Context, c *Comm, dst, src []Loc[T]) error {
	return place(ctx, c, "MinLoc", dst, src, math.MaxUint64)
}

// placed is what MPI reduces for both: the key of a value, which has the order of the values, and
// its place. One operator and one type of our own serve all element types: MPI's pairs have four of
// them, with an int of C for the place.
type placed struct {
	key   uint64
	place int64
}

// needPlaced has MPI make the type of placed once. If that fails, MPI is out of memory, and it is not tried again.
var needPlaced = sync.OnceValue(makePlaced)

// place reduces to the greatest key; flip turns the order round.
func place[T Number](ctx context.Context, c *Comm, op string, dst, src []Loc[T], flip uint64) error {
	if err := c.ready(op); err != nil {
		return err
	}
	if len(dst) != len(src) {
		return failed(op, ErrCount, "dst has %d elements, but should have %d", len(dst), len(src))
	}
	if err := needPlaced(); err != nil {
		return err
	}
	t := TypeOf[T]()
	all := make([]placed, len(src)+1) // with memory, and so an address, also for none
	for i, l := range src {
		all[i] = placed{key(t, l.Value) ^ flip, int64(l.Index)}
	}
	memory := unsafe.Pointer(&all[0])
	k := Call{Kind: KindAllReduce, Type: typePlaced, Op: opFirst, N: len(src), Dst: uintptr(memory), InPlace: true}
	k.keep[0] = memory
	_, err := c.do(ctx, &k)
	runtime.KeepAlive(all)
	if err != nil {
		return err
	}
	for i := range dst {
		dst[i] = Loc[T]{valueOf[T](t, all[i].key^flip), int(all[i].place)}
	}
	return nil
}

// nan is the key of every NaN: beyond that of +Inf.
const nan = math.MaxUint64

// key is v's place in the order of the values of type t.
func key[T Number](t Type, v T) uint64 {
	switch t {
	case TypeFloat32, TypeFloat64:
		f := float64(v)
		switch {
		case f != f:
			return nan
		case f == 0: // also -0
			f = 0
		}
		return ordered(math.Float64bits(f), 1<<63)
	case TypeFloat16, TypeBFloat16:
		inf := uint64(0x7c00)
		if t == TypeBFloat16 {
			inf = 0x7f80
		}
		bits := uint64(v)
		switch {
		case bits&0x7fff > inf:
			return nan
		case bits == 0x8000:
			bits = 0
		}
		return ordered(bits, 1<<15)
	case TypeUint8, TypeUint16, TypeUint32, TypeUint64:
		return uint64(v)
	}
	return uint64(int64(v)) ^ 1<<63
}

// valueOf is the value of type t with that key.
func valueOf[T Number](t Type, key uint64) T {
	switch t {
	case TypeFloat32, TypeFloat64:
		if key == nan {
			return T(math.NaN())
		}
		return T(math.Float64frombits(unordered(key, 1<<63)))
	case TypeFloat16, TypeBFloat16:
		if key == nan {
			key = 1<<15 | 0x7fff // a quiet one in both
		}
		return T(uint16(unordered(key, 1<<15)))
	case TypeUint8, TypeUint16, TypeUint32, TypeUint64:
		return T(key)
	}
	return T(int64(key ^ 1<<63))
}

// ordered makes a float's bits, with its sign at sign, a number in the order of floats: negative ones are turned round.
func ordered(bits, sign uint64) uint64 {
	if bits&sign != 0 {
		return ^bits & (sign<<1 - 1)
	}
	return bits | sign
}

func unordered(key, sign uint64) uint64 {
	if key&sign == 0 {
		return ^key & (sign<<1 - 1)
	}
	return key &^ sign
}
