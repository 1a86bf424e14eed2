// Package content is the bytes of a tensor, in memory or not.
package content

import "io"

// Content is the bytes of a tensor: those in B, or N of On from byte At on.
type Content struct {
	B     []byte
	On    Stored
	At, N int
}

// Stored is what is not in memory.
type Stored interface {
	io.ReaderAt
	io.WriterAt
}

// Len is how many bytes there are.
func (m Content) Len() int { return len(m.B) + m.N }

// Part is bytes lo to hi.
func (m Content) Part(lo, hi int) Content {
	if m.On != nil {
		return Content{On: m.On, At: m.At + lo, N: hi - lo}
	}
	return Content{B: m.B[lo:hi]}
}

// To writes all bytes to w.
func (m Content) To(w io.Writer) (err error) {
	if m.On == nil {
		_, err = w.Write(m.B)
	} else {
		from := io.NewSectionReader(m.On, int64(m.At), int64(m.N))
		_, err = io.CopyBuffer(struct{ io.Writer }{w}, from, make([]byte, storedAtOnce))
	}
	return err
}

// storedAtOnce is how many bytes of a Stored are in memory.
const storedAtOnce = 1 << 20

// Fill has f fill the bytes in turn, from first ones on.
func (m Content) Fill(f func(b []byte, at int) error) error {
	if m.On == nil {
		return f(m.B, 0)
	}
	b := make([]byte, min(m.N, storedAtOnce))
	for at := 0; at < m.N; at += len(b) {
		b = b[:min(len(b), m.N-at)]
		if err := f(b, at); err != nil {
			return err
		}
		if _, err := m.On.WriteAt(b, int64(m.At+at)); err != nil {
			return err
		}
	}
	return nil
}
