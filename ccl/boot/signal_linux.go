package boot

import "syscall"

// attributes puts a rank into a process group of its own, and ends it with its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
