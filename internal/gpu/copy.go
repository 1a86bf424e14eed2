package gpu

import "unsafe"

// Put copies src to the start of m and returns when the copy is done. It does not wait for work on streams.
func (m *Mem[T]) Put(src []T) error {
	b, err := m.use()
	if err != nil {
		return err
	}
	if err := b.mem.Fits(len(src), "Put"); err != nil || len(src) == 0 {
		return err
	}
	p, _ := b.ptr()
	c := b.rt.drv.put(b.dev, p, unsafe.Pointer(unsafe.SliceData(src)), b.mem.Bytes(len(src)))
	return b.rt.check(c, "Memcpy", b.dev)
}

// Get copies the start of m to dst. It does not wait for work on streams.
func (m *Mem[T]) Get(dst []T) error {
	b, err := m.use()
	if err != nil {
		return err
	}
	if err := b.mem.Fits(len(dst), "Get"); err != nil || len(dst) == 0 {
		return err
	}
	p, _ := b.ptr()
	c := b.rt.drv.get(b.dev, unsafe.Pointer(unsafe.SliceData(dst)), p, b.mem.Bytes(len(dst)))
	return b.rt.check(c, "Memcpy", b.dev)
}

// Set writes v to every byte of m and returns when that is done. It does not wait for work on streams.
func (m *Mem[T]) Set(v byte) error {
	b, err := m.use()
	if err != nil || b.len() == 0 {
		return err
	}
	p, _ := b.ptr()
	return b.rt.check(b.rt.drv.set(b.dev, p, v, b.mem.Bytes(b.len())), "Memset", b.dev)
}

// PutOn issues to s a copy of src to the start of m. Until it is done src must not be written or freed.
func (m *Mem[T]) PutOn(s *Stream, src *Host[T]) error {
	to, err := m.use()
	if err != nil {
		return err
	}
	from, err := src.use()
	if err != nil {
		return err
	}
	if err := to.mem.Fits(from.len(), "PutOn"); err != nil {
		return err
	}
	return copyOn(s, to, from, from.len())
}

// GetOn issues to s a copy of the start of m to dst. Until it is done dst must not be read or freed.
func (m *Mem[T]) GetOn(s *Stream, dst *Host[T]) error {
	from, err := m.use()
	if err != nil {
		return err
	}
	to, err := dst.use()
	if err != nil {
		return err
	}
	if err := from.mem.Fits(to.len(), "GetOn"); err != nil {
		return err
	}
	return copyOn(s, to, from, to.len())
}

// CopyOn issues to s a copy of src, which may be on another device, to the start of m.
func (m *Mem[T]) CopyOn(s *Stream, src *Mem[T]) error {
	to, err := m.use()
	if err != nil {
		return err
	}
	from, err := src.use()
	if err != nil {
		return err
	}
	if err := to.mem.Fits(from.len(), "CopyOn"); err != nil {
		return err
	}
	return copyOn(s, to, from, from.len())
}

// SetOn issues to s a write of v to every byte of m.
func (m *Mem[T]) SetOn(s *Stream, v byte) error {
	b, err := m.use()
	if err != nil {
		return err
	}
	stream, err := s.use()
	if err != nil {
		return err
	}
	if err := s.same(b.resource); err != nil || b.len() == 0 {
		return err
	}
	p, _ := b.ptr()
	return b.rt.check(b.rt.drv.setAsync(s.dev, stream, p, v, b.mem.Bytes(b.len())), "MemsetAsync", s.dev)
}

// copyOn copies n elements. The runtime tells from the addresses where they are.
func copyOn(s *Stream, to, from *block, n int) error {
	stream, err := s.use()
	if err != nil {
		return err
	}
	if err := s.same(to.resource); err != nil {
		return err
	}
	if err := s.same(from.resource); err != nil || n == 0 {
		return err
	}
	dst, _ := to.ptr()
	src, _ := from.ptr()
	return s.rt.check(s.rt.drv.copyAsync(s.dev, stream, dst, src, to.mem.Bytes(n)), "MemcpyAsync", s.dev)
}
