//go:build !linux

package cpu

import "sync/atomic"

func bearFlag(*atomic.Uint32) bool { return false }
func dropFlag(*atomic.Uint32)      {}
