package shm

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoomInCgroups(t *testing.T) {
	root := t.TempDir()
	write := func(dir string, files map[string]string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(root, dir, name), []byte(text), 0o644))
		}
	}
	write("a", map[string]string{"memory.max": "1000\n", "memory.current": "400\n"})
	write("a/b", map[string]string{"memory.max": "max\n", "memory.current": "100\n"})
	write("a/b/c", map[string]string{"memory.max": "300\n", "memory.current": "200\n", "memory.stat": "anon 9\ninactive_file 30\nactive_file 20\nshmem 7\n"})
	write("full", map[string]string{"memory.max": "300\n", "memory.current": "310\n"})
	write("unified/u", map[string]string{"memory.max": "70\n", "memory.current": "40\n"})
	none := "9223372036854771712\n"
	write("memory", map[string]string{"memory.limit_in_bytes": none, "memory.usage_in_bytes": "5000\n"})
	write("memory/a", map[string]string{"memory.limit_in_bytes": "800\n", "memory.usage_in_bytes": "300\n", "memory.stat": "inactive_file 7\ntotal_inactive_file 11\ntotal_active_file 100\ntotal_shmem 9\n"})
	write("memory/a/b", map[string]string{"memory.limit_in_bytes": none, "memory.usage_in_bytes": "100\n"})
	write("memory/a/b/c", map[string]string{"memory.limit_in_bytes": "250\n", "memory.usage_in_bytes": "200\n"})
	for _, tc := range []struct {
		self string
		room uint64
	}{
		{"0::/a/b/c\n", 150},
		{"0::/a/b\n", 600},
		{"0::/full\n", 0},
		{"0::/u\n", 30},
		{"0::/\n", math.MaxUint64},
		{"0::/../..\n", math.MaxUint64},
		{"5:cpu:/x\n4:memory:/a\n0::/\n", 611},
		{"4:memory:/a/b\n", 611},
		{"4:memory:/a/b/c\n0::/u\n", 30},
		{"4:hugetlb,memory:/a/b/c\n", 50},
		{"4:memory:/\n", math.MaxUint64},
		{"4:memory:/elsewhere\n", math.MaxUint64},
		{"4:cpu,memory_too:/a\n", math.MaxUint64},
		{"memory\n\n:\n", math.MaxUint64},
	} {
		require.Equal(t, tc.room, roomIn(limitedGroups(root, tc.self)), tc.self)
	}

	// Inside a container, whose own group is the top one.
	write("", map[string]string{"memory.max": "90\n", "memory.current": "40\n"})
	write("memory", map[string]string{"memory.limit_in_bytes": "60\n", "memory.usage_in_bytes": "40\n"})
	require.Equal(t, uint64(50), roomIn(limitedGroups(root, "0::/\n")))
	require.Equal(t, uint64(20), roomIn(limitedGroups(root, "4:memory:/docker/of/its/host\n")))
}

// A group of this system, of the version that has the memory here, with nothing in it.
func TestRoomInACgroupOfThisSystem(t *testing.T) {
	for _, v := range []struct{ name, root, self, limit string }{
		{"version 2", "/sys/fs/cgroup", "0::/", "memory.max"},
		{"version 1", "/sys/fs/cgroup/memory", "4:memory:/", "memory.limit_in_bytes"},
	} {
		t.Run(v.name, func(t *testing.T) {
			group := fmt.Sprintf("goccl-room-%d", os.Getpid())
			if _, err := os.Stat(filepath.Join(v.root, "cgroup.procs")); err != nil {
				t.Skipf("hardware: %v", err)
			}
			if err := os.Mkdir(filepath.Join(v.root, group), 0o755); err != nil {
				t.Skipf("hardware: no cgroup that this user may write: %v", err)
			}
			defer os.Remove(filepath.Join(v.root, group))
			if err := os.WriteFile(filepath.Join(v.root, group, v.limit), []byte("64M"), 0); err != nil {
				t.Skipf("hardware: the cgroup has no memory controller: %v", err)
			}
			require.Equal(t, uint64(64<<20), roomIn(limitedGroups("/sys/fs/cgroup", v.self+group+"\n")))
		})
	}
}

// What this process's cgroup has no room for is refused, and says so.
func TestHasRoom(t *testing.T) {
	root := t.TempDir()
	real := cgroups
	defer func() { cgroups = real }()
	cgroups = func() []cgroup { return limitedGroups(root, "0::/\n") }
	systemSays(t, meminfo)
	require.NoError(t, os.WriteFile(filepath.Join(root, "memory.current"), []byte("1024"), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(root, "memory.max"), []byte(strconv.Itoa(1<<20+1024)), 0o644))
	require.NoError(t, HasRoom(1<<20))
	err := HasRoom(1<<20 + 1024)
	require.EqualError(t, err, "shared memory: 1025 KiB are needed, but the limit of this process's cgroup leaves 1024 KiB; raise it or use fewer ranks")
	require.ErrorIs(t, err, syscall.ENOMEM)
}

// systemSays has meminfo be says until the test ends, and what was found before forgotten.
func systemSays(t *testing.T, says func() ([]byte, error)) {
	real := meminfo
	t.Cleanup(func() { meminfo, lastLook.small = real, 0 })
	meminfo, lastLook.small = says, 0
}

// What is small beside the room that was found is not looked for again for a moment; all of it together is no more than its part.
func TestLooksSeldom(t *testing.T) {
	real := cgroups
	defer func() { cgroups = real }()
	cgroups = func() []cgroup { return nil }
	looks, left := 0, uint64(8<<30)
	systemSays(t, func() ([]byte, error) {
		looks++
		return fmt.Appendf(nil, "MemAvailable: %d kB\n", left>>10), nil
	})
	room := (left - 2<<20) / manyRanks // after the first
	for _, tc := range []struct {
		what    string
		n       uint64
		expired bool
		looks   int
	}{
		{"the first", 1 << 20, false, 1},
		{"half of the part", room / 2, false, 1},
		{"and no more than the other half", room/2 + 2, false, 2},
		{"a moment later", 4096, true, 3},
		{"more than a part", 16 << 20, false, 4},
	} {
		lastLook.at = time.Now().Add(time.Hour) // however slow this test is
		if tc.expired {
			lastLook.at = time.Now().Add(-lookAgain)
		}
		require.NoError(t, HasRoom(tc.n), tc.what)
		require.Equal(t, tc.looks, looks, tc.what)
	}
	left = 1 << 20
	require.ErrorContains(t, HasRoom(16<<20), "this host has 1024 KiB of memory left")
	require.Zero(t, lastLook.small)
}

// Whatever the system's files hold, there is an answer.
func FuzzCgroup(f *testing.F) {
	f.Add("0::/user.slice\n", "MemAvailable:   1024 kB\n")
	f.Add("5:cpu,memory:/docker/x\n1:name=systemd:/\n", "MemAvailable: 99999999999999999999 kB\n")
	f.Add("::\n:::\n0::../../..\n", "MemAvailable\n")
	root, was := f.TempDir(), meminfo
	f.Cleanup(func() { meminfo = was })
	f.Fuzz(func(t *testing.T, self, info string) {
		meminfo = func() ([]byte, error) { return []byte(info), nil }
		available()
		for _, g := range limitedGroups(root, self) {
			t.Fatalf("a limit in an empty directory: %v", g)
		}
	})
}
