package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ThreadsOf asks the kernel for those of a process of this process's own namespace. It is nil where
// the kernel does not say.
func ThreadsOf(pid int) Threads {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	all := Threads{}
	for _, e := range threads {
		if t, ok := threadIn(dir + "/" + e.Name()); ok {
			if id, err := strconv.Atoi(e.Name()); err == nil {
				all[id] = t
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// threadIn reads a thread's directory in /proc. It may have ended by now.
func threadIn(dir string) (t Thread, ok bool) {
	said, err := os.ReadFile(dir + "/schedstat") // nanoseconds on a processor, nanoseconds of waiting for one, turns
	if err != nil {
		return t, false
	}
	var ran, waited int64
	if _, err := fmt.Sscan(string(said), &ran, &waited); err != nil {
		return t, false
	}
	said, err = os.ReadFile(dir + "/stat") // number (name) state ...; the name may have anything in it
	if err != nil {
		return t, false
	}
	t.Ran, t.Waited = time.Duration(ran), time.Duration(waited)
	t.Ready = strings.HasPrefix(string(said[strings.LastIndexByte(string(said), ')')+1:]), " R")
	return t, true
}

// Namespace is the number of the namespace in which this process has its number. Processes that have the same know each
// other by what Getpid returns. It is 0 where /proc is missing, or is that of another namespace.
func Namespace() uint64 {
	self, err := os.Readlink("/proc/self")
	if err != nil || self != strconv.Itoa(os.Getpid()) {
		return 0
	}
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/pid", &st) != nil {
		return 0
	}
	return st.Ino
}
