package device

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
)

// windowBytes is what is copied in one go between the host and the device: one window is filled or
// emptied by the host while the other travels.
const windowBytes = 4 << 20

// chunk is one window: pinned memory, which copies in the background need, and as much on the device.
type chunk struct {
	host *cuda.Host[byte]
	dev  *cuda.Mem[byte]
	mark *cuda.Event // after its last copy
}

func (c *chunk) open(d cuda.Device) (err error) {
	if c.host != nil {
		return nil
	}
	if c.mark, err = d.NewMark(); err != nil {
		return err
	}
	if c.dev, err = cuda.Alloc[byte](d, windowBytes); err != nil {
		return errors.Join(err, c.free())
	}
	if c.host, err = cuda.AllocHost[byte](d, windowBytes); err != nil {
		return errors.Join(err, c.free())
	}
	return nil
}

func (c *chunk) free() error {
	var errs []error
	if c.mark != nil {
		errs = append(errs, c.mark.Close())
	}
	if c.dev != nil {
		errs = append(errs, c.dev.Free())
	}
	if c.host != nil {
		errs = append(errs, c.host.Free())
	}
	*c = chunk{}
	return errors.Join(errs...)
}

// windows are both, for a copy.
func (m *Memory) windows() (*[2]chunk, error) {
	if m.module == nil {
		return nil, errClosed
	}
	for i := range m.window {
		if err := m.window[i].open(m.d); err != nil {
			return nil, err
		}
	}
	return &m.window, nil
}

// hostBytes is the memory of a Buf of the host's of one of the three types, and its kind.
func hostBytes(b ccl.Buf) (p []byte, kind int, ok bool) {
	if s, is := ccl.SliceOf[float32](b); is {
		return bytes(s), f32, true
	}
	if s, is := ccl.SliceOf[float64](b); is {
		return bytes(s), f64, true
	}
	if s, is := ccl.SliceOf[ccl.BFloat16](b); is {
		return bytes(s), bf16, true
	}
	return nil, 0, false
}

func bytes[T any](s []T) []byte {
	var elem T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(elem)))
}

// Put copies src to dst, in the order of Stream, and returns when that is done.
func (m *Memory) Put(dst ccl.Buf, src []byte) error {
	to, err := m.sized("Put", dst, len(src))
	if err != nil || len(src) == 0 {
		return err
	}
	return m.send("Put", src, func(w *chunk, at, n int) error {
		x, err := cuda.MemOf[byte](m.d, to+uintptr(at), n)
		if err != nil {
			return err
		}
		return putOn(m.s, x, w, n)
	})
}

// Get copies src to dst, in the order of Stream, and returns when that is done.
func (m *Memory) Get(dst []byte, src ccl.Buf) error {
	from, err := m.sized("Get", src, len(dst))
	if err != nil || len(dst) == 0 {
		return err
	}
	if err := m.fetch(dst, from); err != nil {
		return fmt.Errorf("device: Get: %w", err)
	}
	return nil
}

// sized is where b begins, which must have n bytes.
func (m *Memory) sized(call string, b ccl.Buf, n int) (uintptr, error) {
	if have := b.Len() * b.Type().Size(); have != n {
		return 0, fmt.Errorf("device: %s: %d bytes on the host, and %d on the device", call, n, have)
	}
	if n == 0 {
		return 0, nil
	}
	return address(call, b)
}

// upload is Convert of host memory.
func (m *Memory) upload(dst ccl.Buf, src []byte, of, n int) error {
	to, kind, have, err := one("Convert", dst)
	switch {
	case err != nil:
		return err
	case have != n:
		return fmt.Errorf("device: Convert: %d elements, and %d", have, n)
	case n == 0:
		return nil
	case kind == of:
		return m.Put(dst, src)
	}
	size, ofSize := dst.Type().Size(), len(src)/n
	return m.send("Convert", src, func(w *chunk, at, bytes int) error {
		if err := putOn(m.s, w.dev, w, bytes); err != nil {
			return err
		}
		from, _ := w.dev.Ptr()
		return m.convert(to+uintptr(at/ofSize*size), from, kind, of, bytes/ofSize)
	})
}

// putOn issues a copy of the first n bytes of w's pinned memory to x.
func putOn(s *cuda.Stream, x *cuda.Mem[byte], w *chunk, n int) error {
	part, err := w.host.Part(0, n)
	if err != nil {
		return err
	}
	return x.PutOn(s, part)
}

// send brings src into pinned memory, window by window, and has put issue what becomes of each.
func (m *Memory) send(call string, src []byte, put func(w *chunk, at, n int) error) error {
	err := m.each(len(src), func(w *chunk, at, n int) error {
		copy(w.host.Slice(), src[at:at+n])
		return put(w, at, n)
	}, nil)
	if err != nil {
		return fmt.Errorf("device: %s: %w", call, err)
	}
	return nil
}

// fetch copies what begins at from to dst.
func (m *Memory) fetch(dst []byte, from uintptr) error {
	return m.each(len(dst), func(w *chunk, at, n int) error {
		x, err := cuda.MemOf[byte](m.d, from+uintptr(at), n)
		if err != nil {
			return err
		}
		part, err := w.host.Part(0, n)
		if err != nil {
			return err
		}
		return x.GetOn(m.s, part)
	}, func(w *chunk, at, n int) { copy(dst[at:at+n], w.host.Slice()) })
}

// each issues start for each window of all bytes, in turns with the two chunks, and calls done when
// what start has issued is done. It returns when all is.
func (m *Memory) each(all int, start func(w *chunk, at, n int) error, done func(w *chunk, at, n int)) error {
	ws, err := m.windows()
	if err != nil {
		return err
	}
	finish := func(i int) error { // of the i-th window
		if at := i * windowBytes; i >= 0 && at < all {
			w := &ws[i%2]
			if err := w.mark.Synchronize(); err != nil {
				return err
			}
			if done != nil {
				done(w, at, min(windowBytes, all-at))
			}
		}
		return nil
	}
	i := 0
	for at := 0; at < all; at, i = at+windowBytes, i+1 {
		if err := finish(i - 2); err != nil {
			return err
		}
		w := &ws[i%2]
		if err := start(w, at, min(windowBytes, all-at)); err != nil {
			return errors.Join(err, m.s.Synchronize()) // nothing is to travel any more
		}
		if err := w.mark.Record(m.s); err != nil {
			return err
		}
	}
	return errors.Join(finish(i-2), finish(i-1))
}
