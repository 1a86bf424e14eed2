//go:build unix && !linux

package subprocess

import "syscall"

// Apart puts a process into a group of its own. These systems let it go on when this process has ended.
func Apart(syscall.Signal) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
