package xpu

import "unsafe"

// Put copies src to the start of m and returns when it is there. It does not wait for work on queues.
func (m *Mem[T]) Put(src []T) error {
	p, err := m.of().live()
	if err == nil {
		err = m.mem.Fits(len(src), "Put")
	}
	if err != nil || len(src) == 0 {
		return err
	}
	q, err := ownQueue(m.dev)
	if err == nil {
		err = q.Put(p, unsafe.Pointer(&src[0]), m.mem.Bytes(len(src)))
	}
	return m.check(err)
}

// Get copies the start of m to dst. It does not wait for work on queues.
func (m *Mem[T]) Get(dst []T) error {
	p, err := m.of().live()
	if err == nil {
		err = m.mem.Fits(len(dst), "Get")
	}
	if err != nil || len(dst) == 0 {
		return err
	}
	q, err := ownQueue(m.dev)
	if err == nil {
		err = q.Get(unsafe.Pointer(&dst[0]), p, m.mem.Bytes(len(dst)))
	}
	return m.check(err)
}

// Set writes v to every byte of m and returns when it is there. It does not wait for work on queues.
func (m *Mem[T]) Set(v byte) error {
	p, err := m.of().live()
	if err != nil || m.Len() == 0 {
		return err
	}
	q, err := ownQueue(m.dev)
	if err == nil {
		err = q.Set(p, v, m.mem.Bytes(m.Len()))
	}
	if err == nil {
		err = q.Wait()
	}
	return m.check(err)
}

// copyOn copies n elements, which call has asked for, when q gets there. device is the memory that is on a device.
func copyOn(q *Queue, dst, src, device *block, n int, call string) error {
	to, err := dst.live()
	if err != nil {
		return err
	}
	from, err := src.live()
	if err == nil {
		err = device.mem.Fits(n, call)
	}
	if err != nil {
		return err
	}
	h, err := q.use()
	if err != nil || n == 0 {
		return err
	}
	return q.check(h.Copy(to, from, device.mem.Bytes(n)))
}

// PutOn copies src to the start of m when q gets there. src must not be written or freed before.
func (m *Mem[T]) PutOn(q *Queue, src *Host[T]) error {
	return copyOn(q, m.of(), src.of(), m.of(), src.Len(), "PutOn")
}

// CopyOn copies src, of this or another device, to the start of m when q gets there.
func (m *Mem[T]) CopyOn(q *Queue, src *Mem[T]) error {
	return copyOn(q, m.of(), src.of(), m.of(), src.Len(), "CopyOn")
}

// GetOn copies the start of m to dst when q gets there. dst must not be read or freed before.
func (m *Mem[T]) GetOn(q *Queue, dst *Host[T]) error {
	return copyOn(q, dst.of(), m.of(), m.of(), dst.Len(), "GetOn")
}

// SetOn writes v to every byte of m when q gets there.
func (m *Mem[T]) SetOn(q *Queue, v byte) error {
	p, err := m.of().live()
	if err != nil {
		return err
	}
	h, err := q.use()
	if err != nil || m.Len() == 0 {
		return err
	}
	return q.check(h.Set(p, v, m.mem.Bytes(m.Len())))
}
