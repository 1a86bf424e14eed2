//go:build !unix

package harness

// brokenPipes has nothing to do where no signal tells of them.
func brokenPipes() (undo func()) { return func() {} }
