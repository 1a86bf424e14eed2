package xpu

import (
	"unsafe"

	"github.com/goccl/goccl/internal/lent"
	"github.com/goccl/goccl/internal/sycl"
)

// Put copies src to the start of m and returns when it is there. It does not wait for work on queues.
func (m *Mem[T]) Put(src []T) error {
	return m.now("Put", len(src), func(q sycl.Queue, p uintptr, n int) error {
		return q.Put(p, unsafe.Pointer(&src[0]),
			n)
	})
}

// Get copies the start of m to dst. It does not wait for work on queues.
func (m *Mem[T]) Get(dst []T) error {
	return m.now("Get", len(dst), func(q sycl.Queue, p uintptr, n int) error {
		return q.Get(unsafe.Pointer(&dst[0]), p,
			n)
	})
}

// Set writes v to every byte of m and returns when it is there. It does not wait for work on queues.
func (m *Mem[T]) Set(v byte) error {
	return m.now("Set", m.Len(), func(q sycl.Queue, p uintptr, n int) error {
		if err := q.Set(p, v, n); err != nil {
			return err
		}
		return q.Wait()
	})
}

// now does something with the first elements of m, which are the n bytes at p, on the device's own queue; with none
// there is nothing to do.
func (m *Mem[T]) now(method string, elements int, do func(q sycl.Queue, p uintptr, n int) error) error {
	p, n, err := m.of().Use(method, elements)
	if err != nil || n == 0 {
		return err
	}
	q, err := ownQueue(m.Device())
	if err == nil {
		err = do(q, p, n)
	}
	return on(m.Device(), err)
}

// PutOn copies src to the start of m when q gets there. src must not be written or freed before.
func (m *Mem[T]) PutOn(q *Queue, src *Host[T]) error {
	return copyOn(q, m.of(), src.of(), m.of(), "PutOn", src.Len())
}

// CopyOn copies src, of this or another device, to the start of m when q gets there.
func (m *Mem[T]) CopyOn(q *Queue, src *Mem[T]) error {
	return copyOn(q, m.of(), src.of(), m.of(), "CopyOn", src.Len())
}

// GetOn copies the start of m to dst when q gets there. dst must not be read or freed before.
func (m *Mem[T]) GetOn(q *Queue, dst *Host[T]) error {
	return copyOn(q, dst.of(), m.of(), m.of(), "GetOn", dst.Len())
}

// SetOn writes v to every byte of m when q gets there.
func (m *Mem[T]) SetOn(q *Queue, v byte) error {
	p, n, err := m.of().Use("SetOn", m.Len())
	if err != nil {
		return err
	}
	h, err := q.use()
	if err != nil || n == 0 {
		return err
	}
	return q.check(h.Set(p, v, n))
}

// copyOn copies n elements for a method of m, which is to or from, when q gets there.
func copyOn(q *Queue, to, from, m *lent.Memory, method string, n int) error {
	dst, src, bytes, err := lent.Copy(to, from, m, method, n)
	if err != nil {
		return err
	}
	h, err := q.use()
	if err != nil || n == 0 {
		return err
	}
	return q.check(h.Copy(dst, src, bytes))
}
