package gpu

// CanAccess reports whether d can read and write the memory of peer directly, without the host.
func (d Device) CanAccess(peer Device) (bool, error) {
	drv, err := d.with(peer)
	if err != nil {
		return false, err
	}
	can, c := drv.canAccess(d.n, peer.n)
	return can, d.rt.check(c, "DeviceCanAccessPeer", d.n)
}

// EnableAccess lets d read and write the memory of peer. If it already can, that is not an error.
func (d Device) EnableAccess(peer Device) error {
	drv, err := d.with(peer)
	if err != nil {
		return err
	}
	c := drv.enablePeer(d.n, peer.n)
	if c == peerEnabled {
		return nil
	}
	return d.rt.check(c, "DeviceEnablePeerAccess", d.n)
}

// DisableAccess undoes EnableAccess. If there was none, that is not an error.
func (d Device) DisableAccess(peer Device) error {
	drv, err := d.with(peer)
	if err != nil {
		return err
	}
	c := drv.disablePeer(d.n, peer.n)
	if c == peerNotEnabled {
		return nil
	}
	return d.rt.check(c, "DeviceDisablePeerAccess", d.n)
}

// with is the library, for a call about two devices.
func (d Device) with(peer Device) (driver, error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	if peer.rt != d.rt {
		return nil, d.rt.errorf("%v and %v belong to different runtimes", d, peer)
	}
	return drv, nil
}
