package subprocess

import "syscall"

// Apart puts a process into a group of its own, and sends it a signal when this process has ended.
func Apart(end syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: end}
}
