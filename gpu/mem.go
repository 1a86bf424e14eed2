package gpu

import (
	"fmt"

	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Mem holds elements in a device's memory. A *Mem[T, P] is a ccl.Memory[T].
type Mem[T Element, P Platform] struct {
	_   [0]P
	_   [0]T
	rt  *rt.Runtime
	mem lent.Memory
}

// Alloc allocates n elements of memory on d. Their contents are undefined.
func Alloc[T Element, P Platform](d Device[P], n int) (*Mem[T, P], error) {
	return allocate[T](d, n, rt.OnDevice)
}

// AllocManaged allocates n elements of memory that has one address for d and the host. The driver
// moves it between them.
func AllocManaged[T Element, P Platform](d Device[P], n int) (*Mem[T, P], error) {
	return allocate[T](d, n, rt.Managed)
}

// MemOf returns a Mem for n elements of memory that other code, such as ccl.MakeDevice, has
// allocated on d at addr. Freeing the Mem leaves that memory alone.
func MemOf[T Element, P Platform](d Device[P], addr uintptr, n int) (*Mem[T, P], error) {
	if _, err := d.ready(); err != nil {
		return nil, err
	}
	bytes, elem, ok := lent.Bytes[T](n)
	if !ok || addr == 0 && n > 0 {
		return nil, d.rt.Errorf("%v: %d elements of %d bytes at %#x is not valid memory", d, n, elem, addr)
	}
	whole := lent.Borrowed(d.rt.Package, d.n, kinds[rt.OnDevice].name(bytes), addr)
	return &Mem[T, P]{rt: d.rt, mem: lent.NewMemory[T](whole, n, false)}, nil
}

// kinds say what a kind of memory is called, and which calls make it and give it back.
var kinds = [...]kind{
	rt.OnDevice: {"device memory", "Malloc", "Free"},
	rt.Managed:  {"managed memory", "MallocManaged", "Free"},
	rt.Pinned:   {"pinned host memory", "HostAlloc", "FreeHost"},
}

type kind struct{ what, alloc, free string }

func (k kind) name(bytes int) string { return fmt.Sprintf("%d bytes of %s", bytes, k.what) }

// allocate makes memory of any kind. The library is not asked for no elements.
func allocate[T Element, P Platform](d Device[P], n int, k rt.Kind) (*Mem[T, P], error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	bytes, elem, ok := lent.Bytes[T](n)
	if !ok {
		return nil, d.rt.Errorf("%v: %d elements of %d bytes is not a valid size", d, n, elem)
	}
	what := kinds[k].name(bytes)
	var p uintptr
	free := func(rt.Driver, int, uintptr) rt.Code { return rt.Success }
	if n > 0 {
		var c rt.Code
		if p, c = drv.Alloc(d.n, k, bytes); c != rt.Success {
			return nil, d.outOfMemory(d.rt.Failure(c, d.rt.Prefix()+kinds[k].alloc, d.n, what))
		}
		free = func(drv rt.Driver, dev int, p uintptr) rt.Code { return drv.Free(dev, k, p) }
	}
	whole := lend(d.rt, d.n, what, kinds[k].free, p, free)
	return &Mem[T, P]{rt: d.rt, mem: lent.NewMemory[T](whole, n, k != rt.OnDevice)}, nil
}

// outOfMemory adds how much there is.
func (d Device[P]) outOfMemory(e *Error) error {
	if rt.Code(e.Code) == rt.NoMemory {
		if free, total, err := d.Memory(); err == nil {
			e.What += fmt.Sprintf(", of %d that are free of %d", free, total)
		}
	}
	return e
}

// Ptr returns the address; ok is false once the memory is freed. Memory without elements has the address 0.
func (m *Mem[T, P]) Ptr() (addr uintptr, ok bool) {
	if m == nil || m.mem.Whole == nil || m.mem.Whole.Gone.Load() != nil {
		return 0, false
	}
	return m.mem.Addr, true
}

// Device returns the number of the device.
func (m *Mem[T, P]) Device() int { return m.of().Device() }

// Len returns the number of elements.
func (m *Mem[T, P]) Len() int { return m.of().Count() }

// Elem returns zero. It carries the type.
func (m *Mem[T, P]) Elem() (zero T) { return zero }

// Platform returns "cuda" or "rocm".
func (m *Mem[T, P]) Platform() string {
	if m == nil || m.rt == nil {
		return ""
	}
	return m.rt.Package
}

// Part returns m[i:j]. It shares the memory of m, and only the whole can be freed.
func (m *Mem[T, P]) Part(i, j int) (*Mem[T, P], error) {
	part, err := m.of().Part(i, j)
	if err != nil {
		return nil, err
	}
	return &Mem[T, P]{rt: m.rt, mem: part}, nil
}

// Slice returns managed memory as a slice for the host. It is valid until the memory is freed.
func (m *Mem[T, P]) Slice() ([]T, error) { return lent.Elements[T](m.of()) }

// Free releases the memory. It waits for all work on the device, as cudaFree does, so issued work may still use the
// memory. Freeing it twice is an error.
func (m *Mem[T, P]) Free() error { return m.of().Free() }

// of is what m holds, nil if there is none.
func (m *Mem[T, P]) of() *lent.Memory {
	if m == nil {
		return nil
	}
	return &m.mem
}

// check makes an error of the result of a call.
func (m *Mem[T, P]) check(c rt.Code, call string) error { return m.rt.Check(c, call, m.Device()) }
