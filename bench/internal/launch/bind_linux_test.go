package launch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// One thread of each core comes first.
func TestSpread(t *testing.T) {
	sys := t.TempDir()
	for cpu, siblings := range []string{"0,4", "1,5", "2,6", "3,7", "0,4", "1,5", "2,6", "3,7"} {
		dir := filepath.Join(sys, "cpu"+strconv.Itoa(cpu), "topology")
		require.NoError(t, os.MkdirAll(dir, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "thread_siblings_list"), []byte(siblings+"\n"), 0o644))
	}
	var set unix.CPUSet
	for cpu := range 8 {
		set.Set(cpu)
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7}, spread(set, sys))
	set.Clear(0)
	require.Equal(t, []int{1, 2, 3, 4, 5, 6, 7}, spread(set, sys))
	set.Clear(2)
	set.Clear(3)
	require.Equal(t, []int{1, 4, 6, 7, 5}, spread(set, sys))
	require.Equal(t, []int{1, 4, 5, 6, 7}, spread(set, t.TempDir()), "nothing is known")
}

// TestBind binds a process of its own, all of whose threads must be bound then.
func TestBind(t *testing.T) {
	if os.Getenv("GOCCL_TEST_BIND") != "" {
		n, err := strconv.Atoi(os.Getenv("GOCCL_TEST_BIND"))
		require.NoError(t, err)
		require.NoError(t, Bind(os.Getenv, boot.Launch{Rank: 0, Size: n, Local: -1}))
		tasks, err := os.ReadDir("/proc/self/task")
		require.NoError(t, err)
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			var set unix.CPUSet
			if unix.SchedGetaffinity(tid, &set) == nil {
				os.Stdout.WriteString("cores " + strconv.Itoa(set.Count()) + "\n")
			}
		}
		return
	}
	var all unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for _, tc := range []struct {
		name string
		vars []string
		want int
	}{
		{"bound", []string{environ.BenchBind.Name + "=" + byRank, "GOCCL_TEST_BIND=1"}, 1},
		{"not told to", []string{"GOCCL_TEST_BIND=1"}, all.Count()},
		{"more ranks than cores", []string{environ.BenchBind.Name + "=" + byRank, "GOCCL_TEST_BIND=100000"}, all.Count()},
		{"the local rank is not known", []string{environ.BenchBind.Name + "=" + byLocal, "GOCCL_TEST_BIND=1"}, all.Count()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cmd := exec.Command(os.Args[0], "-test.run=^TestBind$")
			cmd.Env = append(os.Environ(), tc.vars...)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			threads := 0
			for line := range strings.Lines(string(out)) {
				if n, ok := strings.CutPrefix(line, "cores "); ok {
					threads++
					require.Equal(t, strconv.Itoa(tc.want), strings.TrimSpace(n))
				}
			}
			require.Greater(t, threads, 1)
		})
	}
}
