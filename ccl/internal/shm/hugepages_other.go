//go:build !linux

package shm

// HugePages says nothing here: there are no huge pages.
type HugePages struct{}

func (*HugePages) Add([]byte) {}
