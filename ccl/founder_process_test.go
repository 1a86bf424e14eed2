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

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
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
	self, err := os.Executable()
	require.NoError(t, err)
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
							cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestFounderProcess$")
							cmd.Env = append(os.Environ(), "CCL_TEST_FOUNDERS="+strconv.Itoa(2*size), "GOCCL_HALL="+place, "GOCCL_SECRET="+oneSecret, "GOCCL_LOG=quiet",
								fmt.Sprint("GOCCL_RANK=", r), fmt.Sprint("GOCCL_SIZE=", size), "GOCCL_ROOT="+root)
							out := &outs[job*size+r]
							cmd.Stdout, cmd.Stderr = out, out
							all = append(all, cmd)
						}
					}
					for _, cmd := range all {
						require.NoError(t, cmd.Start())
					}
					var ranks []int
					for i, cmd := range all {
						assert.NoError(t, cmd.Wait(), outs[i].String())
						rank, of := -1, 0
						fmt.Sscanf(outs[i].String(), "%d of %d", &rank, &of)
						assert.Equal(t, 2*size, of, outs[i].String())
						ranks = append(ranks, rank)
					}
					slices.Sort(ranks)
					for i, r := range ranks {
						require.Equal(t, i, r)
					}
				}
			})
		}
	}
}

// rootOf is a port of this host that was free.
func rootOf(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
