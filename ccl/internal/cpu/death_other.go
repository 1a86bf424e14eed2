//go:build !linux

package cpu

import "sync/atomic"

func bearFlag(*atomic.Uint32) bool               { return false }
func watchFlag(_, _ *atomic.Uint32, _ *job) bool { return false }
func dropFlag(*atomic.Uint32)                    {}
