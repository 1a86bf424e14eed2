package ccl

import (
	"errors"
	"reflect"
	"unsafe"
)

// Buf is a view of elements of one type, in host or device memory. The zero Buf is no view.
type Buf struct {
	host  unsafe.Pointer // a Go slice, kept alive while queued
	mem   deviceMemory   // or device memory: its owner, kept alive and asked whether it was freed
	first int            // the element of mem where the view begins
	room  int            // the elements from host on that are one piece of memory: those of the slice's capacity
	count int            // negative: InPlace, or a From out of bounds
	typ   Type
}

// BufOf returns a view of s, which keeps s alive.
func BufOf[T Element](s []T) Buf {
	return Buf{host: unsafe.Pointer(unsafe.SliceData(s)), room: cap(s), count: len(s), typ: TypeOf[T]()}
}

// Host is [BufOf].
//
// Deprecated: use BufOf. Host goes with version 0.4.
func Host[T Number](s []T) Buf { return BufOf(s) }

// Memory is typed device memory: cuda.Mem[T], rocm.Mem[T], xpu.Mem[T]. Elem only
// carries the type.
type Memory[T Number] interface {
	Ptr() (addr uintptr, ok bool) // ok is false once freed
	Device() int
	Len() int
	Elem() T
}

// BufOfMemory returns a view of m, which keeps m alive. A call on it after m was freed is refused. The
// view of nil is empty.
func BufOfMemory[T Number](m Memory[T]) Buf {
	if m == nil {
		return Buf{typ: TypeOf[T]()}
	}
	return Buf{mem: m, count: max(m.Len(), -1), typ: TypeOf[T]()} // a negative length is no InPlace
}

// Device is [BufOfMemory].
//
// Deprecated: use BufOfMemory. Device goes with version 0.4.
func Device[T Number](m Memory[T]) Buf { return BufOfMemory(m) }

// deviceMemory is what a Buf asks its owner.
type deviceMemory interface {
	Ptr() (addr uintptr, ok bool)
	Device() int
}

// SliceOf returns the elements of b as a slice that shares b's memory. It returns false if b is not a
// view of host memory, or if its elements are not of T's Type. The slice is part of the one that
// BufOf was given, cut as Buf.From has cut b.
func SliceOf[T Element](b Buf) ([]T, bool) {
	if b.mem != nil || b.count < 0 || b.typ == TypeNone || b.typ != TypeOf[T]() {
		return nil, false
	}
	return unsafe.Slice((*T)(b.host), b.count), true
}

// Slice is [SliceOf].
//
// Deprecated: use SliceOf. Slice goes with version 0.4.
func Slice[T Number](b Buf) ([]T, bool) { return SliceOf[T](b) }

// From returns b[i:j]. If the bounds are out of range, every call rejects the Buf.
func (b Buf) From(i, j int) Buf {
	if i < 0 || j < i || j > b.count {
		return Buf{count: -1, typ: b.typ}
	}
	b.count = j - i
	if b.mem != nil {
		b.first += i
	} else if b.count > 0 {
		b.host = unsafe.Add(b.host, i*b.typ.Size())
		b.room -= i
	}
	return b
}

// Join returns one Buf for b and next if next begins right behind b, so that both can go in one
// call. It returns false if they are not adjacent, differ in type, or are not known to be parts of
// one piece of memory. On the host the capacity of b's slice must reach over next: flat[0:4] and
// flat[4:6] join, flat[0:4:4] and flat[4:6] do not. On a device both must be views of one Memory.
// An empty Buf joins any other of its type.
func (b Buf) Join(next Buf) (Buf, bool) {
	switch {
	case b.count < 0 || next.count < 0 || b.typ == TypeNone || b.typ != next.typ || (b.mem == nil) != (next.mem == nil):
		return Buf{}, false
	case next.count == 0:
		return b, true
	case b.count == 0:
		return next, true
	case b.mem != nil:
		// Memory is any type of the user's; comparing values of some would panic.
		if !reflect.TypeOf(b.mem).Comparable() || b.mem != next.mem || b.first+b.count != next.first {
			return Buf{}, false
		}
	case uintptr(b.host)+uintptr(b.count*b.typ.Size()) != uintptr(next.host) || b.room-b.count < next.count:
		return Buf{}, false
	}
	b.count += next.count
	return b, true
}

// Addr returns the device address at which b begins, for a program's own kernels that work on b
// between calls. ok is false for host memory, which SliceOf returns, and for freed memory.
func (b Buf) Addr() (addr uintptr, ok bool) {
	if b.mem == nil || b.count < 0 {
		return 0, false
	}
	if addr, ok = b.mem.Ptr(); !ok {
		return 0, false
	}
	return addr + uintptr(b.first*b.typ.Size()), true
}

// Len returns the number of elements.
func (b Buf) Len() int { return max(b.count, 0) }

// Type returns the type of the elements.
func (b Buf) Type() Type { return b.typ }

// area is where b lies on the host.
func (b *Buf) area() area {
	if b.count <= 0 {
		return area{}
	}
	return area{b.host, uintptr(b.host), b.count}
}

// inPlace is the count of the Buf that InPlace returns.
const inPlace = -2

// InPlace returns the src of a call whose input is already in dst, as MPI_IN_PLACE. For AllGather
// and Gather the input is this rank's part of dst. For ReduceScatter dst holds the whole vector,
// and its part r receives the result.
func InPlace() Buf { return Buf{count: inPlace} }

// wrong says why b, whose count is negative, is no memory.
func (b *Buf) wrong() error {
	if b.count == inPlace {
		return errors.New("InPlace is valid only as src")
	}
	return errors.New("Buf.From was out of bounds, or the memory has a negative length")
}
