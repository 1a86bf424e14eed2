//go:build unix

package subprocess

import (
	"io"
	"os"
	"syscall"
)

// pipeSize is how much a pipe holds at most, unless its size has been set: on Linux 16 pages.
var pipeSize = max(64<<10, 16*os.Getpagesize())

// drain passes on what lies in the pipe now. It waits for nobody.
func drain(w io.Writer, pipe *os.File) {
	c, err := pipe.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, pipeSize)
	for left := pipeSize; left > 0; {
		var n int
		var failed error
		if c.Read(func(fd uintptr) bool {
			n, failed = syscall.Read(int(fd), buf[:left])
			return true
		}) != nil {
			return
		}
		if failed == syscall.EINTR {
			continue
		}
		if n <= 0 { // nothing is there, or all who could write have ended
			return
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return
		}
		left -= n
	}
}
