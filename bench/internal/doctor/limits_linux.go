package doctor

import (
	"golang.org/x/sys/unix"
)

// affinity is the processors that this process may use.
func affinity() (cpus []int) {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return nil
	}
	for cpu := range 1024 { // a set's bits
		if set.IsSet(cpu) {
			cpus = append(cpus, cpu)
		}
	}
	return cpus
}

// limits are how many bytes this process may lock, and how many files it may open.
func limits() (memlock, files uint64) {
	var l unix.Rlimit
	memlock, files = unlimited, unlimited
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l) == nil {
		memlock = l.Cur
	}
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		files = l.Cur
	}
	return memlock, files
}

// statfs is a file system's room; zeros where there is none.
func statfs(dir string) space {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return space{}
	}
	return space{s.Blocks * uint64(s.Bsize), s.Bavail * uint64(s.Bsize)}
}
