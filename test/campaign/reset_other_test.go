//go:build !linux

package campaign

func sentBy() map[socket]uint64 { return nil }

func (socket) reset() {}
