//go:build !linux

package ckpt

// direct is for writes that go past the page cache: not here.
const direct = 0
