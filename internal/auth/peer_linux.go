package auth

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
)

const needsSecret = "give all ranks the same GOCCL_SECRET_FILE"

// sameUser asks the kernel, which notes who connects and who listens.
func sameUser(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *syscall.Ucred
	var e error
	if err := raw.Control(func(fd uintptr) {
		cred, e = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	}); err != nil {
		return err
	}
	if e != nil {
		return e
	}
	return judge(cred, os.Geteuid(), Nameless)
}

// judge says what the credentials of a peer mean to a process of user uid.
func judge(peer *syscall.Ucred, uid int, nameless func() error) error {
	switch {
	case int(peer.Uid) != uid:
		return fmt.Errorf("%w: process %d belongs to user %d, not %d", ErrUser, peer.Pid, peer.Uid, uid)
	case peer.Pid == 0: // it has no number here: a container beside this one, which may be somebody else's
		return fmt.Errorf("%w: it runs in another container (PID namespace) as user %d; %s", ErrUntold, uid, needsSecret)
	}
	return nameless()
}

// Nameless returns an error if this process runs as the overflow user of a user namespace. As that
// one appears every user that has no number in the namespace (user_namespaces(7)), so the kernel
// tells nobody apart.
func Nameless() error {
	uid := os.Geteuid()
	if uid != overflowUser() {
		return nil
	}
	if text, err := os.ReadFile("/proc/self/uid_map"); err == nil && mapsAll(text) {
		return nil // a user like any other
	}
	return fmt.Errorf("%w: in this user namespace users without a number appear as %d, as this process does; %s",
		ErrUntold, uid, needsSecret)
}

// overflowUser is the number by which users without one appear.
func overflowUser() int {
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if n, e := strconv.Atoi(string(bytes.TrimSpace(text))); err == nil && e == nil {
		return n
	}
	return 65534
}

// mapsAll reports whether all users have a number in a namespace with that uid_map: lines of a first number inside, one
// outside, and how many.
func mapsAll(text []byte) bool {
	const users = 1<<32 - 1 // -1 is nobody's
	all := uint64(0)
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 3 {
			if n, err := strconv.ParseUint(string(f[2]), 10, 32); err == nil {
				all += n
			}
		}
	}
	return all >= users
}
