package boot

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// meetLocally says whether the ranks of a host can meet at a socket that never
// leaves it: an abstract one, which leaves no file behind, in Linux's namespace of
// the network; there the kernel also says whose the other end is.
const meetLocally = true

// ownedByUs reports whether a connection within this host belongs to this user;
// any other connection has to prove itself by the secret alone.
func ownedByUs(conn net.Conn) bool {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return true
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	owned := false
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		owned = err == nil && int(cred.Uid) == os.Geteuid()
	})
	return err == nil && owned
}
