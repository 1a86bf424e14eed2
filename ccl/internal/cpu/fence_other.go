//go:build !linux

package cpu

func registerFence() bool { return false }

func fence() {}
