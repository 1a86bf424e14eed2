//go:build !unix

package ccl_test

func fileLimit() int { return 1 << 30 }
