//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// prompt is what no Close may take, though the library waits for other ranks: half of what would be
// given up after.
const prompt = 5 * time.Second

// closes closes c in time.
func closes(c *ccl.Comm) error {
	start := time.Now()
	err := c.Close()
	if took := time.Since(start); took > prompt {
		return fmt.Errorf("Close of %q took %v: %w", c.Name(), took, err)
	}
	return err
}

// TestProductClose: ranks close in whatever order, though from 2.31 on the library waits in that
// for all ranks of the host. What was issued before is done, and nothing is left.
func TestProductClose(t *testing.T) {
	const n, calls = 3, 40
	for name, order := range map[string]func(ctx context.Context, r *on, others *sync.WaitGroup) error{
		"together": func(_ context.Context, r *on, _ *sync.WaitGroup) error { return closes(r.c) },
		"one later": func(_ context.Context, r *on, others *sync.WaitGroup) error { // it writes a checkpoint first, say
			if r.me == 0 {
				others.Wait()
				return closes(r.c)
			}
			defer others.Done()
			return closes(r.c)
		},
		"two Comms crosswise": func(ctx context.Context, r *on, _ *sync.WaitGroup) error {
			part, err := r.c.Split(ctx, 0, r.me)
			if err != nil {
				return err
			}
			first, second := part, r.c
			if r.me == 1 {
				first, second = second, first
			}
			if err := closes(first); err != nil {
				return err
			}
			return closes(second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
				leaves(t, name)
				lib := fakeOf(t, name)
				broken := lib.Violations()
				var others sync.WaitGroup
				others.Add(n - 1)
				well(t, n, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
					x := r.mem(1)
					for range calls {
						r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
					}
					sumOf(r.q, x)
					require.NoError(t, order(ctx, r, &others))
					require.NoError(t, r.s.Synchronize())
					require.Equal(t, []int32{n}, r.get(x))
				})
				require.Equal(t, broken, lib.Violations())
			})
		})
	}
	t.Run("together means freed, not aborted", func(t *testing.T) {
		backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
			leaves(t, name)
			t.Setenv("FAKE_NCCL_ABORT_HANG", "1")
			well(t, n, ccl.Options{Backend: name}, rt, func(_ context.Context, r *on) { require.NoError(t, closes(r.c)) })
		})
	})
	t.Run("by one goroutine", func(t *testing.T) {
		backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
			leaves(t, name)
			bs, cs := boot.Local(n), make([]*ccl.Comm, n)
			var made sync.WaitGroup
			for i, b := range bs {
				made.Go(func() {
					var err error
					cs[i], err = ccl.NewComm(t.Context(), b, &ccl.Options{Backend: name})
					assert.NoError(t, err)
				})
			}
			made.Wait()
			for _, c := range cs {
				require.NoError(t, closes(c))
			}
		})
	})
}

// TestProductOlder: what depends on the library's version, with one from before 2.31. A process has
// one version.
func TestProductOlder(t *testing.T) {
	const version = "FAKE_NCCL_VERSION"
	if os.Getenv(version) != "" {
		t.Skip("hardware: this process is the one that this test has started")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^(TestProduct(BadStart|Close|Window|Shrink|CurrentDevice|Alone|Mesh)|TestClose|TestFullStream|TestCloseLasts)$")
	cmd.Env = append(os.Environ(), version+"=22809")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	for _, want := range []string{"--- PASS: TestProductClose/one_later", "--- PASS: TestClose/"} {
		require.Contains(t, string(out), want)
	}
}
