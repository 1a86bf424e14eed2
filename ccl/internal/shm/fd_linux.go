package shm

import (
	"crypto/hmac"
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Listen opens the abstract socket of that name, at which the first process of a host gives the memfd to the others.
func Listen(name string) (*net.UnixListener, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	return l, nil
}

// SendFDs sends descriptors, with b beside them.
func SendFDs(c *net.UnixConn, b []byte, fds ...int) error {
	_, _, err := c.WriteMsgUnix(b, unix.UnixRights(fds...), nil)
	return err
}

// RecvFDs receives n descriptors, with which want must come: the proof that the sender belongs to the job.
func RecvFDs(c *net.UnixConn, want []byte, n int) ([]int, error) {
	got, oob := make([]byte, len(want)), make([]byte, unix.CmsgSpace(4*n))
	size, on, flags, _, err := c.ReadMsgUnix(got, oob)
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	var fds []int
	if msgs, err := unix.ParseSocketControlMessage(oob[:on]); err == nil && len(msgs) == 1 {
		fds, _ = unix.ParseUnixRights(&msgs[0])
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	switch {
	case len(fds) == n && hmac.Equal(got[:size], want):
		return fds, nil
	case len(fds) == n:
		err = errors.New("shared memory: the process that sent it does not belong to this job")
	case flags&unix.MSG_CTRUNC != 0: // the kernel drops what there is no number for
		err = fmt.Errorf("shared memory: %w", unix.EMFILE)
	default:
		err = errors.New("shared memory: no descriptor was received")
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
	return nil, err
}

// HostIdentity tells hosts apart before anything is tried: it names the kernel's boot, and the network namespace, which
// abstract sockets do not leave.
func HostIdentity() string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ns, _ := os.Readlink("/proc/self/ns/net")
	if len(boot) == 0 { // no /proc
		name, _ := os.Hostname()
		return name + ns
	}
	return string(boot) + ns
}
