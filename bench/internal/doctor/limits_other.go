//go:build !linux

package doctor

func affinity() []int { return nil }

func limits() (memlock, files uint64) { return unlimited, unlimited }

func statfs(string) space { return space{} }
