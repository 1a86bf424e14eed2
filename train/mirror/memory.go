package mirror

import (
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// What the Mirror does with bufs: those of the host are read and written in place, and those of a device by Options.On.

// sizeOf returns the number of bytes of a Buf that is no view of host memory, if it may be one of a device.
func (m *Mirror) sizeOf(b ccl.Buf) (int, error) {
	if m.o.On == nil || b.Len() < 0 || b.Type().Size() == 0 {
		return 0, raw.ErrDevice
	}
	return b.Len() * b.Type().Size(), nil
}

// length returns the number of bytes of bufs.
func (m *Mirror) length(bufs []ccl.Buf) (sum int, err error) {
	for _, b := range bufs {
		s, err := raw.Bytes(b)
		n := len(s)
		if err != nil {
			n, err = m.sizeOf(b)
		}
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// pack copies bufs one after the other into room, or into new memory if that is too small.
func (m *Mirror) pack(room []byte, bufs []ccl.Buf) ([]byte, error) {
	n, err := m.length(bufs)
	if err != nil {
		return nil, err
	}
	room = raw.Sized(room, n)
	at := 0
	for _, b := range bufs {
		if s, err := raw.Bytes(b); err == nil {
			at += copy(room[at:], s)
			continue
		}
		end := at + b.Len()*b.Type().Size()
		if err := m.o.On.Get(room[at:end], b); err != nil {
			return nil, err
		}
		at = end
	}
	return room, nil
}

// unpack is the reverse of pack. data has the length of bufs.
func (m *Mirror) unpack(bufs []ccl.Buf, data []byte) error {
	for _, b := range bufs {
		if s, err := raw.Bytes(b); err == nil {
			data = data[copy(s, data):]
			continue
		}
		n := b.Len() * b.Type().Size()
		if err := m.o.On.Put(b, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// squarer is a Copier that sums up squares where the memory is, in an order that follows from the length alone, as a device.Memory.
type squarer interface {
	SumsOfSquares(sums []float64, src ...ccl.Buf) error
}

// hash is of the bits of bufs of the host, and of the sums of squares of those of a device.
func (m *Mirror) hash(bufs []ccl.Buf) (int64, error) {
	if m.o.On == nil {
		return raw.Hash(bufs)
	}
	var parts, far []ccl.Buf
	for _, b := range bufs {
		if _, err := raw.Bytes(b); err == nil {
			parts = append(parts, b)
		} else {
			far = append(far, b)
		}
	}
	if s, ok := m.o.On.(squarer); ok && len(far) > 0 {
		sums := make([]float64, len(far))
		if s.SumsOfSquares(sums, far...) == nil { // else of a type that it does not know
			return raw.Hash(append(parts, ccl.BufOf(sums)))
		}
	}
	data, err := m.pack(nil, far)
	if err != nil {
		return 0, err
	}
	return raw.Hash(append(parts, ccl.BufOf(data)))
}
