//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/program"
)

// growVariable is how many spares the job of TestProductGrowProcess has.
const growVariable = "NATIVE_TEST_GROW"

// TestProductGrowProcess is no test of its own: it is what the processes run that TestProductGrown starts, 3 workers. Rank 1 is killed in
// a call, and started again. Without a spare the others shrink, and grow with it. With one, that takes the number, and Grow makes the
// newcomer a spare; then number 2 is killed, which the newcomer replaces. The sums of all Comms are exact, on a communicator of their own.
func TestProductGrowProcess(t *testing.T) {
	of := os.Getenv(growVariable)
	if of == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	name, newcomer, spares := os.Getenv(backendVariable), os.Getenv("GOCCL_NEWCOMER"), 0
	fmt.Sscan(of, &spares)
	rt := map[string]*gpu.Runtime{"nccl": gpu.CUDA, "rccl": gpu.HIP}[name]
	c, err := ccl.Join(ctx, &ccl.Options{Backend: name, Spares: spares})
	if errors.Is(err, ccl.ErrUnused) {
		return
	}
	require.NoError(t, err)
	defer func() { c.Close() }()
	loses := func(victim int) { // which is killed in a call
		_ = ccl.Barrier(ctx, c) // all have their sums: it may be gone before others have left this one
		require.Error(t, onDevice(ctx, c, rt, 1<<30, func() {
			if c.Rank() == victim {
				self, _ := os.FindProcess(os.Getpid())
				self.Kill()
				select {}
			}
		}))
	}
	becomes := func(next *ccl.Comm, err error) {
		require.NoError(t, err)
		if next == c {
			return
		}
		require.NoError(t, c.Close())
		c = next
		require.Equal(t, name, c.Backend())
		require.NoError(t, onDevice(ctx, c, rt, 3, nil))
	}
	if len(c.Fresh()) == 0 {
		require.NoError(t, onDevice(ctx, c, rt, 3, nil))
		if loses(1); spares > 0 {
			becomes(c.Replace(ctx))
		} else {
			becomes(c.Shrink(ctx))
		}
	} else {
		require.NoError(t, onDevice(ctx, c, rt, 3, nil))
	}
	c.Restored()
	if newcomer == "" {
		for c.Size() < 3 || c.Waiting() < spares {
			becomes(ccl.Grow(ctx, c, 3))
		}
		if spares > 0 {
			loses(2)
			becomes(c.Replace(ctx))
		}
	}
	require.NoError(t, ccl.Barrier(ctx, c))
	require.Zero(t, fakeOf(t, name).Violations())
	fmt.Printf("rank %s: number %d of %d, device %d\n", cmp.Or(newcomer, os.Getenv("GOCCL_RANK")), c.Rank(), c.Size(), c.Place().Device)
}

// TestProductGrown: a job on a library takes in a process that comes late, as a rank and as a spare that is needed later. It makes a new
// communicator each time, on a device that nobody of the others has.
func TestProductGrown(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		for spares, numbers := range [][3]string{
			{"rank 0: number 0 of 3, device 0\n", "rank 2: number 1 of 3, device 2\n", "rank 1.1: number 2 of 3, device 1\n"},
			{"rank 0: number 0 of 3, device 0\n", "rank 3: number 1 of 3, device 1\n", "rank 1.1: number 2 of 3, device 2\n"},
		} {
			t.Run(fmt.Sprintf("%d spares", spares), func(t *testing.T) {
				text, _ := program.Itself(t, long, boot.Command{N: 3 + spares, Restart: 1}, "TestProductGrowProcess", fmt.Sprintf("%s=%d", growVariable, spares), backendVariable+"="+name)
				require.NotContains(t, text, "FAIL")
				for _, n := range numbers {
					require.Contains(t, text, n)
				}
			})
		}
	})
}
