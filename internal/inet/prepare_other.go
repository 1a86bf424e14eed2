//go:build !unix

package inet

// prepare has nothing to do here.
func prepare(uintptr, string) error { return nil }
