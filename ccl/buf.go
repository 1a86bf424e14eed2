package ccl

import "unsafe"

// Buf is a view of elements of one type. The zero Buf is no buffer.
type Buf struct {
	host  unsafe.Pointer // a Go slice, kept alive while queued
	mem   deviceMemory   // or device memory: its owner, kept alive and asked whether it was freed
	first int            // the element of mem where the view begins
	count int            // negative: a From out of bounds
	typ   Type
}

// Host is a view of s. It keeps s alive.
func Host[T Number](s []T) Buf {
	return Buf{host: unsafe.Pointer(unsafe.SliceData(s)), count: len(s), typ: TypeOf[T]()}
}

// From is b[i:j]. Bounds that are out of range make a Buf that every call rejects.
func (b Buf) From(i, j int) Buf {
	if i < 0 || j < i || j > b.count {
		return Buf{count: -1, typ: b.typ}
	}
	b.count = j - i
	if b.mem != nil {
		b.first += i
	} else if b.count > 0 {
		b.host = unsafe.Add(b.host, i*b.typ.Size())
	}
	return b
}

// Len is the number of elements.
func (b Buf) Len() int { return max(b.count, 0) }

// Type is the type of the elements.
func (b Buf) Type() Type { return b.typ }

func (b *Buf) bytes() []byte {
	if b.count <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(b.host), b.count*b.typ.Size())
}

// inPlace marks the Buf that InPlace returns.
var inPlace byte

// InPlace, as src, says that dst holds the input, as MPI_IN_PLACE: for AllGather and
// Gather this rank's part of it; for ReduceScatter dst is the whole vector, and its
// part r gets the result.
func InPlace() Buf { return Buf{host: unsafe.Pointer(&inPlace)} }

func (b *Buf) inPlace() bool { return b.host == unsafe.Pointer(&inPlace) }
