package auth

import (
	"errors"
	"net"
)

// Errors of SameUser, for errors.Is.
var (
	// ErrUser: the process at the other end belongs to another user.
	ErrUser = errors.New("a process of another user")
	// ErrUntold: the kernel cannot tell whose process is at the other end.
	ErrUntold = errors.New("the kernel does not tell whose process this is")
)

// SameUser returns nil if the kernel says that the process at the other end of conn belongs to this
// user. An abstract socket has no permissions, so whoever takes one for a sign of being on one host
// asks this first.
//
// Where the kernel cannot tell, as between containers, only a secret can, which the two ends are
// about to prove: then the answer is nil if there is one. It is nil as well for what is no Unix
// socket, where the handshake alone counts.
func SameUser(conn net.Conn, secret Secret) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return nil
	}
	err := sameUser(c)
	if errors.Is(err, ErrUntold) && secret.Known() {
		return nil
	}
	return err
}
