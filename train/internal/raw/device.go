package raw

import "github.com/goccl/goccl/ccl"

// Copier copies between the host and the memory of a device: a ckpt.Copier.
type Copier interface {
	Get(dst []byte, src ccl.Buf) error
	Put(dst ccl.Buf, src []byte) error
}

// Views is what can be done with views on the host, read and written in place, and with those of a
// device, by On. A nil On has none of these.
type Views struct{ On Copier }

// sizeOf returns the number of bytes of a Buf that is no view of host memory, if it may be one of a device.
func (v Views) sizeOf(b ccl.Buf) (int, error) {
	_, within := b.Join(b.From(0, 0)) // not one that was cut out of another beyond its end
	if v.On == nil || !within || b.Type().Size() == 0 {
		return 0, ErrDevice
	}
	return b.Len() * b.Type().Size(), nil
}

// Len returns the number of bytes of bufs.
func (v Views) Len(bufs []ccl.Buf) (sum int, err error) {
	for _, b := range bufs {
		s, err := Bytes(b)
		n := len(s)
		if err != nil {
			n, err = v.sizeOf(b)
		}
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// Pack copies bufs one after the other into room, or into new memory if that is too small.
func (v Views) Pack(room []byte, bufs []ccl.Buf) ([]byte, error) {
	n, err := v.Len(bufs)
	if err != nil {
		return nil, err
	}
	room = Sized(room, n)
	at := 0
	for _, b := range bufs {
		if s, err := Bytes(b); err == nil {
			at += copy(room[at:], s)
			continue
		}
		end := at + b.Len()*b.Type().Size()
		if err := v.On.Get(room[at:end], b); err != nil {
			return nil, err
		}
		at = end
	}
	return room, nil
}

// Unpack is the reverse of Pack. data has the length of bufs.
func (v Views) Unpack(bufs []ccl.Buf, data []byte) error {
	for _, b := range bufs {
		if s, err := Bytes(b); err == nil {
			data = data[copy(s, data):]
			continue
		}
		n := b.Len() * b.Type().Size()
		if err := v.On.Put(b, data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// squarer is a Copier that sums up squares where the memory is, in an order that follows from the
// length alone, as a device.Memory.
type squarer interface {
	SumsOfSquares(sums []float64, src ...ccl.Buf) error
}

// Hash is of the bits of bufs of the host, and of the sums of squares of those of a device.
func (v Views) Hash(bufs []ccl.Buf) (int64, error) {
	if v.On == nil {
		return Hash(bufs)
	}
	var parts, far []ccl.Buf
	for _, b := range bufs {
		if _, err := Bytes(b); err == nil {
			parts = append(parts, b)
		} else {
			far = append(far, b)
		}
	}
	if s, ok := v.On.(squarer); ok && len(far) > 0 {
		sums := make([]float64, len(far))
		if s.SumsOfSquares(sums, far...) == nil { // else of a type that it does not know
			return Hash(append(parts, ccl.BufOf(sums)))
		}
	}
	data, err := v.Pack(nil, far)
	if err != nil {
		return 0, err
	}
	return Hash(append(parts, ccl.BufOf(data)))
}
