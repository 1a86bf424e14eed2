//go:build !unix

package tcp

// fileLimit says what to do about too many open files.
func fileLimit() string { return "run fewer ranks per process: each stream is a file" }
