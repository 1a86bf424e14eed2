//go:build !linux

package campaign

type socket struct{}

func sentBy() map[socket]uint64 { return nil }

func (socket) reset() {}
