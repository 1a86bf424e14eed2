package inet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/goccl/goccl/internal/simhost"
)

// Trouble is why this host, or this process, cannot connect or listen, whoever is at the other end.
type Trouble struct {
	// Text says what it is, and what helps.
	Text string
	// Lasting is set where trying again is in vain.
	Lasting bool
	// Err is what the kernel said.
	Err error
}

func (t *Trouble) Error() string { return t.Text }
func (t *Trouble) Unwrap() error { return t.Err }

// Of returns the Trouble in err, or nil.
func Of(err error) (t *Trouble) {
	errors.As(err, &t)
	return t
}

// downLook is after how long without an answer Dial asks whether the address is this host's own, and its
// loopback interface is down.
const downLook = 100 * time.Millisecond

// Dial connects to addr over network, tcp or unix, within limit, unless that is 0, and until ctx ends. The
// connection's own port is no obstacle to a listener: rank 0's may be bound to it afterwards.
func Dial(ctx context.Context, network, addr string, limit time.Duration) (net.Conn, error) {
	if h := simhost.Of(ctx); h != nil {
		if limit > 0 {
			short, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			ctx = short
		}
		return h.Dial(ctx, addr)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var to []netip.Addr // what addr has led to, of late
	d := net.Dialer{Timeout: limit, Control: func(_, address string, c syscall.RawConn) error {
		if a, err := netip.ParseAddrPort(address); err == nil {
			mu.Lock()
			to = append(to, a.Addr())
			mu.Unlock()
		}
		var err error
		if cerr := c.Control(func(fd uintptr) { err = prepare(fd, network) }); cerr != nil {
			return cerr
		}
		return err
	}}
	isDown := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(to, func(a netip.Addr) bool { return LeadsHere(nil, a) }) && loopbackDown()
	}
	look := time.AfterFunc(downLook, func() {
		if isDown() {
			cancel(errDown)
		}
	})
	conn, err := d.DialContext(ctx, network, addr)
	look.Stop()
	switch {
	case err == nil && network != "unix" && conn.LocalAddr().String() == conn.RemoteAddr().String():
		// Nobody listens there, and the kernel gave the connection that very port (RFC 9293, 3.5: simultaneous open).
		conn.Close()
		return nil, &net.OpError{Op: "dial", Net: network, Addr: conn.RemoteAddr(),
			Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	case err == nil:
		return conn, nil
	case errors.Is(context.Cause(ctx), errDown), CutOff(err) && isDown():
		return nil, &Trouble{Text: DownText, Lasting: true, Err: err}
	case denied(err, network):
		return nil, &Trouble{Text: fmt.Sprintf("this process may not connect: %v. A sandbox denies it, such as a seccomp filter", Reason(err)), Lasting: true, Err: err}
	case errors.Is(err, syscall.EADDRNOTAVAIL) && slices.ContainsFunc(to, routed):
		return nil, &Trouble{Text: "this host has no free port for connections (net.ipv4.ip_local_port_range): those of connections that have ended are free again after a minute", Err: err}
	}
	return nil, err
}

var errDown = errors.New("the loopback interface is down")

// routed reports whether this host has an address from which it would send to a. To connect a UDP socket sends nothing.
func routed(a netip.Addr) bool {
	_, err := Route(a)
	return err == nil
}

// Route asks the kernel for the address of this host that it would send from.
func Route(toward netip.Addr) (netip.Addr, error) {
	const discard = 9 // RFC 863; any port would do
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(netip.AddrPortFrom(toward, discard)))
	if err != nil {
		return netip.Addr{}, err
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap(), nil
}

// CutOff reports whether err says that there is no way to an address.
func CutOff(err error) bool {
	return errors.Is(err, syscall.ENETUNREACH) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETDOWN)
}

// IsTimeout reports whether err says that nothing has come back in time: the kernel's, the dialer's, or that
// of a deadline.
func IsTimeout(err error) bool {
	var ran net.Error
	return errors.As(err, &ran) && ran.Timeout()
}

// denied reports whether the kernel does not let this process make connections. To a path another user may
// have forbidden it.
func denied(err error, network string) bool {
	var call *os.SyscallError
	if !errors.As(err, &call) || network == "unix" && call.Syscall == "connect" {
		return false
	}
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.ENOSYS)
}

// Reason is an error of a connection without the addresses around it.
func Reason(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}
