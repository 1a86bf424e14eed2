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

// SendFD sends fd, with b beside it.
func SendFD(c *net.UnixConn, fd int, b []byte) error {
	_, _, err := c.WriteMsgUnix(b, unix.UnixRights(fd), nil)
	return err
}

// RecvFD receives a descriptor, with which want must come: the proof that the sender belongs to the job.
func RecvFD(c *net.UnixConn, want []byte) (int, error) {
	got, oob := make([]byte, len(want)), make([]byte, unix.CmsgSpace(4))
	n, on, flags, _, err := c.ReadMsgUnix(got, oob)
	if err != nil {
		return -1, fmt.Errorf("shared memory: %w", err)
	}
	fd := -1
	if msgs, err := unix.ParseSocketControlMessage(oob[:on]); err == nil && len(msgs) == 1 {
		if fds, err := unix.ParseUnixRights(&msgs[0]); err == nil && len(fds) == 1 {
			fd = fds[0]
			unix.CloseOnExec(fd)
		}
	}
	switch {
	case fd < 0 && flags&unix.MSG_CTRUNC != 0: // the kernel drops what there is no number for
		return -1, fmt.Errorf("shared memory: %w", unix.EMFILE)
	case fd < 0:
		return -1, errors.New("shared memory: no descriptor was received")
	case !hmac.Equal(got[:n], want):
		unix.Close(fd)
		return -1, errors.New("shared memory: the process that sent it does not belong to this job")
	}
	return fd, nil
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
