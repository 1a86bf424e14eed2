package cpu

import (
	"bufio"
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// A cgroup that is out of memory does not refuse: it kills. So before memory is taken it is
// asked how much it has left (cgroup v2: Documentation/admin-guide/cgroup-v2.rst).

// cgroups are the directories of this process's cgroup and those above it that set a limit.
var cgroups = sync.OnceValue(func() []string {
	self, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	return limitedGroups("/sys/fs/cgroup", string(self))
})

// limitedGroups finds them below root; self is /proc/self/cgroup.
func limitedGroups(root, self string) (dirs []string) {
	for line := range strings.Lines(self) {
		path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !ok {
			continue
		}
		for dir := filepath.Join(root, path); strings.HasPrefix(dir, root) && dir != root; dir = filepath.Dir(dir) {
			if _, ok := number(filepath.Join(dir, "memory.max")); ok {
				dirs = append(dirs, dir)
			}
		}
	}
	return dirs
}

// roomIn is how many bytes the tightest of the groups has left. Cached files can go, and count as
// room; shared memory is not among them.
func roomIn(dirs []string) uint64 {
	room := uint64(math.MaxUint64)
	for _, dir := range dirs {
		limit, ok := number(filepath.Join(dir, "memory.max"))
		used, ok2 := number(filepath.Join(dir, "memory.current"))
		if !ok || !ok2 {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(dir, "memory.stat"))
		for lines := bufio.NewScanner(bytes.NewReader(stat)); lines.Scan(); {
			if name, value, _ := strings.Cut(lines.Text(), " "); name == "inactive_file" || name == "active_file" {
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
