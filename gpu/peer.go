package gpu

import rt "github.com/goccl/goccl/internal/gpu"

// CanAccess reports whether d can read and write the memory of peer directly, without the host.
func (d Device[P]) CanAccess(peer Device[P]) (bool, error) {
	drv, err := d.with(peer)
	if err != nil {
		return false, err
	}
	can, c := drv.CanAccess(d.n, peer.n)
	return can, d.check(c, "DeviceCanAccessPeer")
}

// EnableAccess lets d read and write the memory of peer. If it already can, that is not an error.
func (d Device[P]) EnableAccess(peer Device[P]) error {
	return d.access(peer, rt.Driver.EnablePeer, "DeviceEnablePeerAccess", rt.PeerEnabled)
}

// DisableAccess undoes EnableAccess. If there was none, that is not an error.
func (d Device[P]) DisableAccess(peer Device[P]) error {
	return d.access(peer, rt.Driver.DisablePeer, "DeviceDisablePeerAccess", rt.PeerNotEnabled)
}

// access changes what d may do with the memory of peer. The code already is no error: it is so.
func (d Device[P]) access(peer Device[P], set func(drv rt.Driver, dev, peer int) rt.Code, call string,
	already rt.Code) error {
	drv, err := d.with(peer)
	if err != nil {
		return err
	}
	c := set(drv, d.n, peer.n)
	if c == already {
		return nil
	}
	return d.check(c, call)
}

// with is the library, for a call about two devices.
func (d Device[P]) with(peer Device[P]) (rt.Driver, error) {
	if _, err := peer.ready(); err != nil {
		return nil, err
	}
	return d.ready()
}
