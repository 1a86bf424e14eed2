//go:build linux

package faults

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/race"
)

const partVar = "GOCCL_FAULTS_PART"

// parts are what a rank process does in a test.
var parts = map[string]func(ctx context.Context, c *ccl.Comm){"work": work}

// TestRankProcess is not a test of its own: it is what the processes run.
func TestRankProcess(t *testing.T) {
	name := os.Getenv(partVar)
	if name == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: 5 * time.Second})
	if err != nil {
		fmt.Printf("no Comm: %v\n", err)
		return
	}
	defer c.Close()
	parts[name](ctx, c)
}

// work makes calls of all sizes, and says how it ended.
func work(ctx context.Context, c *ccl.Comm) {
	for _, n := range []int{1, 1000, 1 << 20} {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(c.Rank())
		}
		for range 3 {
			if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
				fmt.Printf("rank %d ended: %v\n", c.Rank(), err)
				return
			}
		}
		if x[n-1] != float32(c.Size()-1) {
			fmt.Printf("rank %d: wrong: %v\n", c.Rank(), x[n-1])
		}
	}
	a, b := make([]float32, 1000), make([]float32, 1000)
	next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	if err := ccl.SendRecv(ctx, c, a, before, b, next); err != nil {
		fmt.Printf("rank %d ended: %v\n", c.Rank(), err)
		return
	}
	if err := ccl.Barrier(ctx, c); err != nil {
		fmt.Printf("rank %d ended: %v\n", c.Rank(), err)
		return
	}
	fmt.Printf("rank %d is done\n", c.Rank())
}

// processes runs a part on n processes, each under sh with a prelude such as ulimit.
func processes(t *testing.T, n, hosts int, part, prelude string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var out bytes.Buffer
	err := boot.Spawn(ctx, boot.Command{N: n, Hosts: hosts, Path: "/bin/sh", KeepGoing: true,
		Args: []string{"-c", prelude + ` exec "$0" -test.run='^TestRankProcess$'`, os.Args[0]},
		Env:  append(os.Environ(), partVar+"="+part, "GORACE=atexit_sleep_ms=0"), Stdout: &out, Stderr: &out})
	text := out.String()
	require.NoError(t, ctx.Err(), "a rank hangs: %v\n%s", err, text)
	require.NotRegexp(t, regexp.MustCompile(`SIGBUS|SIGSEGV|unexpected fault address|wrong`), text)
	return text
}

// allOrClear requires that all of n ranks are done, or that none is, and each says why.
func allOrClear(t *testing.T, text string, n int, why string) {
	t.Helper()
	if strings.Count(text, "is done\n") == n {
		return
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "rank ") || strings.HasPrefix(line, "no Comm") {
			require.Contains(t, line, "ccl: ", text)
		}
	}
	require.Regexp(t, why, text)
	// Go's own end where it gets no memory is one, too.
	ended := strings.Count(text, " ended: ") + strings.Count(text, "no Comm: ") + strings.Count(text, "fatal error: ")
	require.GreaterOrEqual(t, ended, n, "half a job:\n%s", text)
}

// Shared memory is a memfd: what is mounted on /dev/shm, if anything, does not matter.
func TestSmallOrNoDevShm(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting needs root's rights: run as root")
	}
	if out, err := exec.Command("unshare", "--mount", "true").CombinedOutput(); err != nil {
		t.Skipf("no right to make namespaces (a container needs --privileged): %s", out)
	}
	for name, mount := range map[string]string{
		"64 MiB":    "mount -t tmpfs -o size=64m none /dev/shm",
		"full":      "mount -t tmpfs -o size=4k none /dev/shm; head -c 4096 /dev/zero >/dev/shm/x",
		"none":      "mount -t tmpfs none /dev; mknod /dev/null c 1 3; mknod /dev/urandom c 1 9",
		"read only": "mount -t tmpfs -o ro none /dev/shm",
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", mount+`; exec "$0" -test.run='^TestInside$' -test.v`, os.Args[0])
			cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "GOCCL_FAULTS_INSIDE=1"), &out, &out
			require.NoError(t, cmd.Run(), out.String())
			require.Contains(t, out.String(), "--- PASS: TestInside")
		})
	}
}

// TestInside is what TestSmallOrNoDevShm runs.
func TestInside(t *testing.T) {
	if os.Getenv("GOCCL_FAULTS_INSIDE") == "" {
		return
	}
	text := processes(t, 4, 0, "work", "")
	require.Equal(t, 4, strings.Count(text, "is done\n"), text)
}

func TestFewDescriptors(t *testing.T) {
	for _, hosts := range []int{0, 6} {
		for _, limit := range []int{256, 20} {
			t.Run(fmt.Sprintf("%d on %d hosts", limit, hosts), func(t *testing.T) {
				text := processes(t, 6, hosts, "work", fmt.Sprintf("ulimit -n %d;", limit))
				if limit == 256 {
					require.Equal(t, 6, strings.Count(text, "is done\n"), text)
				}
				allOrClear(t, text, 6, `open files|descriptor|not (joined|reached)|lost|refused`)
			})
		}
	}
}

// An address-space limit: Go itself needs some 200 MiB of it, and the engine maps little.
func TestLittleAddressSpace(t *testing.T) {
	if race.Enabled {
		return // which itself wants terabytes of it
	}
	for _, mib := range []int{4096, 1024} {
		t.Run(fmt.Sprintf("%d MiB", mib), func(t *testing.T) {
			text := processes(t, 3, 0, "work", fmt.Sprintf("ulimit -v %d;", mib<<10))
			allOrClear(t, text, 3, `memory|map`)
		})
	}
}

// A limit of file size concerns memory files, too: fallocate is refused, with a signal.
func TestSmallFileSize(t *testing.T) {
	text := processes(t, 3, 0, "work", "ulimit -f 1024;")
	allOrClear(t, text, 3, `shared memory|file too large|lost|no Comm`)
}

// A cgroup's limit kills: what a rank is about to take and will not get is said before. Which version has the memory
// is the system's choice.
func TestLittleCgroupMemory(t *testing.T) {
	for _, v := range []struct{ name, root, limit string }{
		{"version 2", "/sys/fs/cgroup", "memory.max"},
		{"version 1", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
	} {
		t.Run(v.name, func(t *testing.T) {
			if _, err := os.Stat(filepath.Join(v.root, "cgroup.procs")); err != nil {
				t.Skipf("hardware: no cgroup of %s with the memory controller: %v", v.name, err)
			}
			group := filepath.Join(v.root, fmt.Sprintf("goccl-faults-%d", os.Getpid()))
			if err := os.Mkdir(group, 0o755); err != nil {
				t.Skipf("hardware: no cgroup of %s that this user may write: %v", v.name, err)
			}
			defer os.Remove(group)
			if _, err := os.Stat(filepath.Join(group, v.limit)); err != nil {
				t.Skip("hardware: the cgroup has no memory controller: it must be in cgroup.subtree_control")
			}
			limit := "48M"
			if race.Enabled { // with which a process takes several times as much before it does anything
				limit = "288M"
			}
			require.NoError(t, os.WriteFile(filepath.Join(group, v.limit), []byte(limit), 0))
			text := processes(t, 4, 0, "work", "echo $$ > "+group+"/cgroup.procs;")
			allOrClear(t, text, 4, `memory|lost`)
		})
	}
	syscall.Sync()
}
