package gpu

import (
	"unsafe"

	"github.com/goccl/goccl/internal/lent"
)

// Put copies src to the start of m and returns when the copy is done. It does not wait for work on streams.
func (m *Mem[T, P]) Put(src []T) error {
	p, n, err := m.of().Use("Put", len(src))
	if err != nil || n == 0 {
		return err
	}
	return m.check(m.rt.Driver.Put(m.Device(), p, unsafe.Pointer(unsafe.SliceData(src)), n), "Memcpy")
}

// Get copies the start of m to dst. It does not wait for work on streams.
func (m *Mem[T, P]) Get(dst []T) error {
	p, n, err := m.of().Use("Get", len(dst))
	if err != nil || n == 0 {
		return err
	}
	return m.check(m.rt.Driver.Get(m.Device(), unsafe.Pointer(unsafe.SliceData(dst)), p, n), "Memcpy")
}

// Set writes v to every byte of m and returns when that is done. It does not wait for work on streams.
func (m *Mem[T, P]) Set(v byte) error {
	p, n, err := m.of().Use("Set", m.Len())
	if err != nil || n == 0 {
		return err
	}
	return m.check(m.rt.Driver.Set(m.Device(), p, v, n), "Memset")
}

// PutOn issues to s a copy of src to the start of m. Until it is done src must not be written or freed.
func (m *Mem[T, P]) PutOn(s *Stream[P], src *Host[T, P]) error {
	return copyOn(s, m.of(), src.of(), m.of(), "PutOn", src.Len())
}

// GetOn issues to s a copy of the start of m to dst. Until it is done dst must not be read or freed.
func (m *Mem[T, P]) GetOn(s *Stream[P], dst *Host[T, P]) error {
	return copyOn(s, dst.of(), m.of(), m.of(), "GetOn", dst.Len())
}

// CopyOn issues to s a copy of src, which may be on another device, to the start of m.
func (m *Mem[T, P]) CopyOn(s *Stream[P], src *Mem[T, P]) error {
	return copyOn(s, m.of(), src.of(), m.of(), "CopyOn", src.Len())
}

// SetOn issues to s a write of v to every byte of m.
func (m *Mem[T, P]) SetOn(s *Stream[P], v byte) error {
	p, n, err := m.of().Use("SetOn", m.Len())
	if err != nil {
		return err
	}
	h, err := s.of().Use()
	if err != nil || n == 0 {
		return err
	}
	return s.check(s.rt.Driver.SetAsync(s.Device(), h, p, v, n), "MemsetAsync")
}

// copyOn copies n elements for a method of m, which is to or from. The runtime tells from the addresses where they are.
func copyOn[P Platform](s *Stream[P], to, from, m *lent.Memory, method string, n int) error {
	dst, src, bytes, err := lent.Copy(to, from, m, method, n)
	if err != nil {
		return err
	}
	h, err := s.of().Use()
	if err != nil || n == 0 {
		return err
	}
	return s.check(s.rt.Driver.CopyAsync(s.Device(), h, dst, src, bytes), "MemcpyAsync")
}
