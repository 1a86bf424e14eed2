package boot

import (
	"net"
	"net/netip"
	"sync"

	"github.com/goccl/goccl/internal/auth"
)

// door is a listener, and those that came to it and have not proved yet that they belong to the
// job.
type door struct {
	net.Listener
	strangers *auth.Strangers
	secret    auth.Secret
}

// doors are those of a server: rank 0 has one, and a relay one for its host and, in a large job,
// one for others.
type doors struct {
	few int // so many may be in the handshake at each while none is slow; 0: as many as there is room for

	mu   sync.Mutex
	list []*door
	deaf bool
}

// open notes a listener, which deafen closes. It returns nil, and has closed l, if that has been.
func (d *doors) open(l net.Listener, secret auth.Secret) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.deaf {
		l.Close()
		return nil
	}
	o := &door{l, auth.NewStrangers(l.Addr()), secret}
	if d.few > 0 {
		o.strangers.Few(d.few)
	}
	d.list = append(d.list, o)
	return o
}

// portOn is the port of the door at that address of this host, 0 if there is none.
func (d *doors) portOn(ip netip.Addr) uint16 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.list {
		if a, ok := o.Addr().(*net.TCPAddr); ok && addrOf(a) == ip {
			return uint16(a.Port)
		}
	}
	return 0
}

// refused is how many connections did not know the job's secret.
func (d *doors) refused() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.list {
		n += o.strangers.Refused()
	}
	return n
}

// deafen stops listening, and ends what is still in the handshake.
func (d *doors) deafen() {
	d.mu.Lock()
	d.deaf = true
	list := d.list
	d.mu.Unlock()
	for _, o := range list {
		o.Close()
		o.strangers.Close()
	}
}
