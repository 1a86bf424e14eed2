//go:build !unix

package subprocess

import (
	"io"
	"os"
	"syscall"
)

// What is not done where the system is no Unix.

// Apart does nothing here: consoles tell all processes themselves.
func Apart(syscall.Signal) *syscall.SysProcAttr { return nil }

// drain has nothing to do: pipes have no deadline here.
func drain(io.Writer, *os.File) {}

// Wishes are none here.
var Wishes []os.Signal

// PassOn has nothing to do here.
func PassOn(os.Signal, func(os.Signal)) {}
