//go:build !linux

package ckpt

import "os"

// direct is for writes that go past the page cache: not here.
const direct = 0

func notDirect(*os.File) error { return nil }
