package xpu

import (
	"fmt"
	"unsafe"
)

// errRoom is an error where bytes are more than there is room for.
func errRoom(have, need int) error {
	if need <= have {
		return nil
	}
	return fmt.Errorf("xpu: %d elements do not fit into memory of %d", need, have)
}

// Put copies src to the start of m and returns when it is there. It does not wait for work on queues.
func (m *Mem[T]) Put(src []T) error {
	p, err := m.of().live()
	if err == nil {
		err = errRoom(m.count, len(src))
	}
	if err != nil || len(src) == 0 {
		return err
	}
	q, err := ownQueue(m.dev)
	if err == nil {
		err = q.Put(p, unsafe.Pointer(&src[0]), len(src)*m.size)
	}
	return m.check(err)
}

// Get copies the start of m to dst. It does not wait for work on queues.
func (m *Mem[T]) Get(dst []T) error {
	p, err := m.of().live()
	if err == nil {
		err = errRoom(m.count, len(dst))
	}
	if err != nil || len(dst) == 0 {
		return err
	}
	q, err := ownQueue(m.dev)
	if err == nil {
		err = q.Get(unsafe.Pointer(&dst[0]), p, len(dst)*m.size)
	}
	return m.check(err)
}

// Set writes v to every byte of m and returns when it is there. It does not wait for work on queues.
func (m *Mem[T]) Set(v byte) error {
	p, err := m.of().live()
	if err != nil || m.count == 0 {
		return err
	}
	q, err := ownQueue(m.dev)
	if err == nil {
		err = q.Set(p, v, m.count*m.size)
	}
	if err == nil {
		err = q.Wait()
	}
	return m.check(err)
}

// copyOn copies count elements when q gets there.
func copyOn(q *Queue, dst, src *block) error {
	to, err := dst.live()
	if err != nil {
		return err
	}
	from, err := src.live()
	if err == nil {
		err = errRoom(dst.count, src.count)
	}
	if err != nil {
		return err
	}
	h, err := q.use()
	if err != nil || src.count == 0 {
		return err
	}
	return q.check(h.Copy(to, from, src.count*src.size))
}

// PutOn copies src to the start of m when q gets there. src must not be written or freed before.
func (m *Mem[T]) PutOn(q *Queue, src *Host[T]) error { return copyOn(q, m.of(), src.of()) }

// CopyOn copies src, of this or another device, to the start of m when q gets there.
func (m *Mem[T]) CopyOn(q *Queue, src *Mem[T]) error { return copyOn(q, m.of(), src.of()) }

// GetOn copies the start of m to dst when q gets there. dst must not be read or freed before.
func (m *Mem[T]) GetOn(q *Queue, dst *Host[T]) error {
	from := m.of()
	if _, err := from.live(); err != nil {
		return err
	}
	if err := errRoom(from.count, dst.Len()); err != nil {
		return err
	}
	part := *from
	part.count = dst.Len()
	return copyOn(q, dst.of(), &part)
}

// SetOn writes v to every byte of m when q gets there.
func (m *Mem[T]) SetOn(q *Queue, v byte) error {
	p, err := m.of().live()
	if err != nil {
		return err
	}
	h, err := q.use()
	if err != nil || m.count == 0 {
		return err
	}
	return q.check(h.Set(p, v, m.count*m.size))
}
