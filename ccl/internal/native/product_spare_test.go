//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/program"
)

// spareVariable says how rank 1 is lost in TestProductSpareProcess.
const spareVariable = "NATIVE_TEST_SPARE"

// TestProductSpareProcess is no test of its own: it is what the processes run that TestProductReplaced starts. Rank 1 is killed. The
// others replace it, and make sums on a new communicator.
func TestProductSpareProcess(t *testing.T) {
	how := os.Getenv(spareVariable)
	if how == "" {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	name := os.Getenv(backendVariable)
	rt := map[string]*gpu.Runtime{"nccl": gpu.CUDA, "rccl": gpu.HIP}[name]
	c, err := ccl.Join(ctx, &ccl.Options{Backend: name, Spares: 1})
	require.NoError(t, err)
	defer func() { c.Close() }()
	if len(c.Fresh()) == 0 {
		require.NoError(t, onDevice(ctx, c, rt, 3, nil))
		_ = ccl.Barrier(ctx, c) // all have their sums; rank 1 may be gone before others have left this one
		dies := func() {}
		if c.Rank() == 1 {
			dies = func() {
				self, _ := os.FindProcess(os.Getpid())
				self.Kill()
				select {}
			}
		}
		if how == "between calls" {
			dies()
		}
		err := onDevice(ctx, c, rt, 1<<30, dies)
		require.Error(t, err)
		next, err := c.Replace(ctx)
		require.NoError(t, err)
		require.NoError(t, c.Close())
		c = next
	}
	require.Equal(t, name, c.Backend())
	require.NoError(t, onDevice(ctx, c, rt, 3, nil))
	require.NoError(t, ccl.Barrier(ctx, c))
	fmt.Printf("rank %s: number %d of %d, device %d, fresh %v\n", os.Getenv("GOCCL_RANK"), c.Rank(), c.Size(), c.Place().Device, c.Fresh())
}

// onDevice makes sums of what each rank's number is on the rank's device, until one fails. later, if there
// is one, is called while a call is under way.
func onDevice(ctx context.Context, c *ccl.Comm, rt *gpu.Runtime, sums int, later func()) error {
	n := c.Size()
	d, err := rt.Device(c.Place().Device)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	x, err := gpu.Alloc[int32](d, 1)
	if err != nil {
		return err
	}
	q := c.On(s)
	for i := range sums {
		if err := x.Put([]int32{int32(c.Rank())}); err != nil {
			return err
		}
		w := sumOf(q, x)
		if later != nil && i == 3 {
			later()
		}
		if err := w.Wait(ctx); err != nil { // what the call has in use is freed with the process
			return err
		}
		got := make([]int32, 1)
		if err := x.Get(got); err != nil || int(got[0]) != n*(n-1)/2 {
			return fmt.Errorf("the sum of %d ranks is %d: %w", n, got[0], err)
		}
	}
	return errors.Join(x.Free(), s.Close())
}

// TestProductReplaced: a spare takes the place of a rank that was killed, on the same device, and all make a new communicator: the
// pool, which has none, gives them its id.
func TestProductReplaced(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		for _, how := range []string{"between calls", "in a call"} {
			for _, silent := range []string{"0", "1"} {
				t.Run(how+", silent="+silent, func(t *testing.T) {
					t.Setenv("FAKE_NCCL_SILENT_DEATH", silent)
					text, _ := program.Itself(t, soon, boot.Command{N: 4, KeepGoing: true}, "TestProductSpareProcess", spareVariable+"="+how, backendVariable+"="+name)
					require.NotContains(t, text, "FAIL")
					for rank, number := range map[int]int{0: 0, 2: 2, 3: 1} {
						require.Contains(t, text, fmt.Sprintf("rank %d: number %d of 3, device %d, fresh [1]\n", rank, number, number))
					}
					require.Equal(t, 3, strings.Count(text, ": number "))
				})
			}
		}
	})
}
