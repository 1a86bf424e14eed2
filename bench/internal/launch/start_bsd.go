//go:build unix && !linux

package launch

import "syscall"

// apart puts a launcher into a process group of its own, so that a terminal's Ctrl-C
// does not come twice.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
