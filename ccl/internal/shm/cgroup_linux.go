package shm

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A cgroup that is out of memory does not refuse: it kills. So before memory is taken it is
// asked how much it has left (Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst).

// cgroup is one that sets a limit to memory.
type cgroup struct {
	dir string
	*memoryFiles
}

// memoryFiles are the files of a cgroup, and the lines of its memory.stat that are cached files of it and those below.
type memoryFiles struct{ limit, used, inactive, active string }

var (
	version2 = &memoryFiles{"memory.max", "memory.current", "inactive_file", "active_file"}
	version1 = &memoryFiles{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"}
)

// noLimit is what version 1 writes for none, less what rounding takes from it.
const noLimit = 1 << 62

// cgroups are this process's cgroup and its ancestors, as far as they set a limit.
var cgroups = sync.OnceValue(func() []cgroup {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return limitedGroups("/sys/fs/cgroup", string(self))
})

// limitedGroups finds them below root, where systemd and containers have them; self is /proc/self/cgroup.
func limitedGroups(root, self string) (found []cgroup) {
	walk := func(top, path string, files *memoryFiles) {
		// In a container the path may be that of its host, and its own cgroup the top one.
		for dir := filepath.Join(top, path); strings.HasPrefix(dir, top); dir = filepath.Dir(dir) {
			if limit, ok := number(filepath.Join(dir, files.limit)); ok && limit < noLimit {
				found = append(found, cgroup{dir, files})
			}
		}
	}
	for line := range strings.Lines(self) {
		controllers, path, ok := strings.Cut(strings.TrimSpace(line), ":")
		if ok {
			controllers, path, ok = strings.Cut(path, ":")
		}
		switch {
		case !ok:
		case controllers == "":
			walk(root, path, version2)
			walk(filepath.Join(root, "unified"), path, version2)
		case slices.Contains(strings.Split(controllers, ","), "memory"):
			walk(filepath.Join(root, "memory"), path, version1)
		}
	}
	return found
}

// HasRoom refuses n bytes of shared memory where taking them would have the kernel kill: this
// process's cgroups must have room for them, and so must the system. To read what they have left
// takes a seventh of the time of a small job's start, so what was found counts for a moment for
// what is small beside it.
func HasRoom(n uint64) error {
	lastLook.Lock()
	defer lastLook.Unlock()
	if n <= lastLook.small && time.Since(lastLook.at) < lookAgain {
		lastLook.small -= n
		return nil
	}
	lastLook.at, lastLook.small = time.Now(), 0
	group := roomIn(cgroups())
	if group < n {
		return shortage(fmt.Sprintf("shared memory: %d KiB are needed, but the limit of this process's cgroup leaves %d KiB; raise it or use fewer ranks", n>>10, group>>10))
	}
	left := available()
	if left < n+min(n, spareRoom) {
		return shortage(fmt.Sprintf("shared memory: %d KiB are needed, but this host has %d KiB of memory left; free memory or use fewer ranks", n>>10, left>>10))
	}
	lastLook.small = min(group-n, left-n-min(n, spareRoom)) / manyRanks
	return nil
}

// lastLook is what HasRoom found when it looked last.
var lastLook struct {
	sync.Mutex
	at    time.Time
	small uint64 // how much more may be taken without another look
}

const (
	lookAgain = 50 * time.Millisecond
	manyRanks = 2048 // so many ranks may look at once, and each take what is small
)

// shortage says that what this process may have of the machine's memory is used up.
type shortage string

func (s shortage) Error() string { return string(s) }

func (shortage) Unwrap() error { return syscall.ENOMEM }

// spareRoom is how much of a system's memory stays free beside what is taken, at most: as much again as is taken.
const spareRoom = 64 << 20

// meminfo reads what the system says of its memory. Tests replace it.
var meminfo = func() ([]byte, error) { return os.ReadFile("/proc/meminfo") }

// available is how many bytes the system can give without swapping, as it reckons itself:
// MemAvailable of /proc/meminfo, proc_meminfo(5); all there can be where that is not known. A
// system that is out of memory does not refuse either.
func available() uint64 {
	text, err := meminfo()
	if err != nil {
		return math.MaxUint64
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(line, ":"); name == "MemAvailable" {
			if kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 54); err == nil {
				return kib << 10
			}
		}
	}
	return math.MaxUint64
}

// roomIn is how many bytes the tightest of the groups has left. Cached files can go, and count as
// room; shared memory is not among them.
func roomIn(groups []cgroup) uint64 {
	room := uint64(math.MaxUint64)
	for _, g := range groups {
		limit, ok := number(filepath.Join(g.dir, g.limit))
		used, ok2 := number(filepath.Join(g.dir, g.used))
		if !ok || !ok2 {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
		for line := range strings.Lines(string(stat)) {
			if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == g.inactive || name == g.active {
				n, _ := strconv.ParseUint(value, 10, 64)
				limit += n
			}
		}
		room = min(room, max(limit, used)-used)
	}
	return room
}

// number reads a file that holds one number.
func number(file string) (uint64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}
