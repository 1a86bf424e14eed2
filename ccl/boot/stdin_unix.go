//go:build unix

package boot

import (
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// controls reports whether f is this process's terminal.
func controls(f *os.File) bool {
	_, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP)
	return err == nil
}

// foreground reads a terminal while this process is in its foreground. Reading in its background would stop
// this process, and with it all ranks.
type foreground struct{ f *os.File }

func (t foreground) Read(p []byte) (int, error) {
	const look = 200 * time.Millisecond // for a way back to the foreground
	fd := int(t.f.Fd())
	for {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); errors.Is(err, unix.EINTR) {
			continue
		} else if err != nil {
			return 0, err
		}
		own, _ := unix.Getpgid(0)
		if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group != own {
			time.Sleep(look)
			continue
		}
		n, err := unix.Read(fd, p)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}
