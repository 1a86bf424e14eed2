package gpu

// Owns returns an error if the driver says that p is not an address in the memory of d, and nil if it cannot tell. It is
// for addresses that come from outside: memory of this package knows its device.
func (d Device) Owns(p uintptr) error {
	drv, err := d.ready()
	if err != nil {
		return err
	}
	// HIP 5 numbers the kinds of memory otherwise.
	if _, version, c := drv.versions(); c != success || d.rt == HIP && version < 60000000 {
		return nil
	}
	typ, on, c := drv.pointer(d.n, p)
	const host, device, managed = 1, 2, 3
	switch {
	case c == absent || typ == managed:
		return nil
	case c != success:
		return d.rt.failure(c, "PointerGetAttributes", d.n, "not an address in device memory")
	case typ == host:
		return d.rt.errorf("%v: %#x is host memory, not device memory", d, p)
	case typ != device:
		return d.rt.errorf("%v: %#x is not an address in device memory", d, p)
	case on != d.n:
		return d.rt.errorf("%v: %#x is memory of %v", d, p, Device{d.rt, on})
	}
	return nil
}
