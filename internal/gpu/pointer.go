package gpu

import "strconv"

// Owns returns an error if the driver says that p is not an address in the memory of device n, and
// nil if it cannot tell.
func (r *Runtime) Owns(n int, p uintptr) error {
	if err := r.Open(); err != nil {
		return err
	}
	// HIP 5 numbers the kinds of memory otherwise.
	if _, version, c := r.Driver.Versions(); c != Success || r == HIP && version < 60000000 {
		return nil
	}
	typ, on, c := r.Driver.Pointer(n, p)
	const host, device, managed = 1, 2, 3
	switch {
	case c == Absent || typ == managed:
		return nil
	case c != Success:
		return r.Failure(c, r.prefix+"PointerGetAttributes", n, "not an address in device memory")
	case typ == host:
		return r.Errorf("%s: %#x is host memory, not device memory", r.device(n), p)
	case typ != device:
		return r.Errorf("%s: %#x is not an address in device memory", r.device(n), p)
	case on != n:
		return r.Errorf("%s: %#x is memory of %s", r.device(n), p, r.device(on))
	}
	return nil
}

// device reads like "cuda:0".
func (r *Runtime) device(n int) string { return r.Package + ":" + strconv.Itoa(n) }
