//go:build oneccl && cgo && linux

package oneccl

import "github.com/goccl/goccl/internal/engine"

// Left is how many communicators were closed and are not destroyed.
func Left(lib engine.Library) int {
	l := lib.(*library)
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.left)
}
