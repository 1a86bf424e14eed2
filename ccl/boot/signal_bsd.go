//go:build unix && !linux

package boot

import "syscall"

// attributes puts a rank into a process group of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
