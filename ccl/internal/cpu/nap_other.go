//go:build !linux

package cpu

import "time"

// napper is for systems whose time.Sleep counts in less than milliseconds, or which have nothing better.
type napper struct{}

func (*napper) open()                  {}
func (*napper) nap(time.Duration) bool { return false }
func (*napper) close()                 {}
