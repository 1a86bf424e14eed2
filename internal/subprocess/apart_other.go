//go:build !unix

package subprocess

import "syscall"

// Apart does nothing here: consoles tell all processes themselves.
func Apart(syscall.Signal) *syscall.SysProcAttr { return nil }
