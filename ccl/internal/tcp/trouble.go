package tcp

import (
	"errors"
	"syscall"
)

// IsOwnTrouble reports whether an Open failed for want of something on this side, a
// descriptor, memory or a port, so that it says nothing of the peer.
func IsOwnTrouble(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL, syscall.EACCES, syscall.EPERM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
