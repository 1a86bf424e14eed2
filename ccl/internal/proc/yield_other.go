//go:build !linux

package proc

import "runtime"

// Yield lets another goroutine run.
func Yield() { runtime.Gosched() }
