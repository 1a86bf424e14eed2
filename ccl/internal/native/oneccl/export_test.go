//go:build oneccl && cgo && linux

package oneccl

// Left is how many communicators were closed and are not destroyed.
func Left() int {
	opened.Lock()
	l := opened.lib
	opened.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.left)
}
