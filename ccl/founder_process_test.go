package ccl_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/lobby"
)

// TestFounderProcess is not a test of its own: it is what the processes run that TestOneJobIsFounded starts. They grow until all are one job.
func TestFounderProcess(t *testing.T) {
	want, err := strconv.Atoi(os.Getenv("CCL_TEST_FOUNDERS"))
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "cpu"})
	require.NoError(t, err)
	for c.Size() < want {
		next, err := ccl.Grow(ctx, c, want)
		require.NoError(t, err)
		if next != c {
			require.NoError(t, c.Close())
			c = next
		}
	}
	works(ctx, t, c)
	fmt.Printf("%d of %d\n", c.Rank(), c.Size())
	require.NoError(t, c.Close())
}

// Of jobs that start at once with one empty hall, or one empty directory, one is founded, and the processes of the others are taken in.
func TestOneJobIsFounded(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: starts 24 processes")
	}
	for _, size := range []int{1, 2} {
		for _, kind := range []string{"hall", "directory"} {
			t.Run(fmt.Sprint(kind, ", jobs of ", size), func(t *testing.T) {
				for range 2 {
					place := t.TempDir()
					if kind == "hall" {
						h, err := boot.ListenHall("127.0.0.1:0", []byte(oneSecret))
						require.NoError(t, err)
						defer h.Close()
						place = h.Addr()
					}
					var all []*exec.Cmd
					outs := make([]bytes.Buffer, 2*size)
					for job := range 2 {
						root := rootOf(t)
						for r := range size {
							all = append(all, founder(t, &outs[job*size+r], 2*size, place, r, size, root))
						}
					}
					for _, cmd := range all {
						require.NoError(t, cmd.Start())
					}
					joinOne(t, all, outs)
				}
			})
		}
	}
}

// founder is a process of TestFounderProcess, of so many in the end: a rank of a job.
func founder(t *testing.T, out *bytes.Buffer, all int, place string, rank, size int, root string) *exec.Cmd {
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestFounderProcess$")
	cmd.Env = append(os.Environ(), "CCL_TEST_FOUNDERS="+strconv.Itoa(all), "GOCCL_HALL="+place, "GOCCL_SECRET="+oneSecret, "GOCCL_LOG=quiet",
		fmt.Sprint("GOCCL_RANK=", rank), fmt.Sprint("GOCCL_SIZE=", size), "GOCCL_ROOT="+root)
	cmd.Stdout, cmd.Stderr = out, out
	return cmd
}

// joinOne waits for processes that are to be the ranks of one job.
func joinOne(t *testing.T, all []*exec.Cmd, outs []bytes.Buffer) {
	var ranks []int
	for i, cmd := range all {
		assert.NoError(t, cmd.Wait(), outs[i].String())
		rank, of := -1, 0
		fmt.Sscanf(outs[i].String(), "%d of %d", &rank, &of)
		assert.Equal(t, len(all), of, outs[i].String())
		ranks = append(ranks, rank)
	}
	slices.Sort(ranks)
	for i, r := range ranks {
		require.Equal(t, i, r)
	}
}

// A job whose ranks start one after the other, while another is founded, is not torn: those that have waited for its last rank, which
// came late, come late, too.
func TestTornJobComesLate(t *testing.T) {
	for _, tc := range []struct {
		name  string
		first int
	}{{"rank 0 waits", 0}, {"rank 1 waits", 1}} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			place, root := t.TempDir(), rootOf(t)
			var outs [4]bytes.Buffer
			start := func(cmd *exec.Cmd) *exec.Cmd {
				require.NoError(t, cmd.Start())
				return cmd
			}
			all := []*exec.Cmd{start(founder(t, &outs[0], 4, place, tc.first, 2, root))}
			looked := assert.Eventually(new(testing.T), func() bool { // it has looked whether it comes late
				c, err := net.Dial("tcp", root)
				if err != nil {
					return false
				}
				c.Close()
				return true
			}, map[int]time.Duration{0: long, 1: time.Second}[tc.first], time.Millisecond)
			require.Equal(t, tc.first == 0, looked)
			other := rootOf(t)
			for r := range 2 {
				all = append(all, start(founder(t, &outs[1+r], 4, place, r, 2, other)))
			}
			store, err := boot.FileStore(place, []byte(oneSecret))
			require.NoError(t, err)
			_, err = lobby.Founder(t.Context(), store)
			require.NoError(t, err)
			all = append(all, start(founder(t, &outs[3], 4, place, 1-tc.first, 2, root)))
			joinOne(t, all, outs[:])
		})
	}
}

// rootOf is a port of this host that was free.
func rootOf(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
