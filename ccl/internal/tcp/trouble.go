package tcp

import (
	"errors"
	"slices"
	"syscall"
)

// IsOwnTrouble reports whether an Open failed for want of something on this side, a
// descriptor, memory or a port, so that it says nothing of the peer.
func IsOwnTrouble(err error) bool {
	own := []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL,
		syscall.EACCES, syscall.EPERM}
	return slices.ContainsFunc(own, func(e error) bool { return errors.Is(err, e) })
}
