package tcp

// ring is a bounded buffer of bytes, filled at one place and emptied at another.
type ring struct {
	buf        []byte
	start, len int
}

func newRing(size int) ring { return ring{buf: make([]byte, size)} }

// filled is the oldest bytes, as many as lie together.
func (r *ring) filled() []byte {
	return r.buf[r.start:min(r.start+r.len, len(r.buf))]
}

// free is room for more, as much as lies together.
func (r *ring) free() []byte {
	end := r.start + r.len
	if end < len(r.buf) {
		return r.buf[end:]
	}
	return r.buf[end-len(r.buf) : r.start]
}

// put says that n bytes of free are filled.
func (r *ring) put(n int) { r.len += n }

// take says that n bytes of filled are free.
func (r *ring) take(n int) {
	r.len -= n
	if r.start += n; r.start >= len(r.buf) {
		r.start -= len(r.buf)
	}
}
