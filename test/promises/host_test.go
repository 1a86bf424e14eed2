//go:build linux

package promises

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func init() {
	parts["all killed"] = func(ctx context.Context, c *ccl.Comm) {
		callOnce(ctx, c)
		syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
	parts["child"] = func(ctx context.Context, c *ccl.Comm) {
		callOnce(ctx, c)
		out, err := exec.Command("ls", "-l", "/proc/self/fd").CombinedOutput()
		fmt.Printf("child of rank %d: %v %s\n", c.Rank(), err, strings.ReplaceAll(string(out), "\n", " | "))
		callOnce(ctx, c)
	}
}

// callOnce makes calls that take all of the host's memory that there is to take.
func callOnce(ctx context.Context, c *ccl.Comm) {
	x := make([]float32, 1<<20)
	if err := ccl.AllReduce(ctx, c, x, x, ccl.Max); err != nil {
		fmt.Println(err)
	}
}

// A rank that does not come is named within the deadline and a little, on all others.
func TestR7MissingRankIsNamed(t *testing.T) {
	const limit = 300 * time.Millisecond
	boots := boot.Local(3)
	var all sync.WaitGroup
	var mu sync.Mutex
	var over []time.Duration
	for _, b := range boots[:2] {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			_, err := ccl.NewComm(ctx, b, nil)
			took := time.Since(began) - limit
			var e *ccl.Error
			if !errorAs(err, &e) || e.Code != ccl.ErrTimeout || len(e.Missing) != 1 || e.Missing[0] != 2 {
				t.Errorf("rank %d: %v", b.Rank(), err)
			}
			mu.Lock()
			defer mu.Unlock()
			over = append(over, took)
		})
	}
	all.Wait()
	middle, largest := spread(over)
	record(t, 7, "R7", "a rank does not come to NewComm: all others name it", "deadline + 100ms", "deadline %+v, at most %+v", round(middle), round(largest))
	asserted(t, "NewComm", largest, 100*time.Millisecond)
}

func errorAs(err error, e **ccl.Error) bool {
	got, ok := err.(*ccl.Error)
	*e = got
	return ok
}

// All ranks are killed: nothing is left in /dev/shm, and no process.
func TestR10NothingIsLeft(t *testing.T) {
	before := files(t, "/dev/shm")
	_, text := processes(t, 3, 0, "all killed", "")
	require.Equal(t, before, files(t, "/dev/shm"), text)
	record(t, 10, "R10", "files left when all ranks are killed", "0", "0: shared memory has no name")
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range list {
		if strings.Contains(f.Name(), "goccl") {
			names = append(names, f.Name())
		}
	}
	return names
}

// A child process has none of the engine's descriptors.
func TestR11ChildHasNoDescriptors(t *testing.T) {
	_, text := processes(t, 2, 0, "child", "")
	for r := range 2 {
		require.Contains(t, text, fmt.Sprintf("child of rank %d: <nil>", r))
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "child of rank") {
			require.NotContains(t, line, "memfd")
			require.NotContains(t, line, "socket")
		}
	}
	record(t, 11, "R11", "descriptors of the engine in a child process", "0", "0")
}
