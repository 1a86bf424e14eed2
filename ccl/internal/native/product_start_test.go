//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/internal/native"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// TestProductBadStart: the library fails on one rank before it has made what a communicator needs,
// and keeps that: a full device. All ranks get the error, and nothing is left of the communicators,
// which are aborted: to revoke that one would be a crash.
func TestProductBadStart(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		lib := fakeOf(t, name)
		before, broken := lib.Live()[4], lib.Violations()
		t.Setenv("FAKE_NCCL_BAD_START", "0")
		t.Setenv("FAKE_NCCL_INIT_TIMEOUT", "2")
		start := time.Now()
		for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(context.Context, *on) error { return nil }) {
			e := failure(t, rank, err, ccl.ErrBackend)
			assert.Contains(t, e.Error(), "out of memory", "rank %d", rank)
		}
		assert.Less(t, time.Since(start), soon)
		require.Eventually(t, func() bool { return lib.Live()[4] <= before }, soon, time.Millisecond, "communicators are left")
		require.Equal(t, broken, lib.Violations())
	})
}

// TestProductCurrentDevice: ranks of one process, each on its device, with a library of which some
// ways need the communicator's device to be the thread's, as RCCL's up to 2.30.4 do. Marks, memory
// and the other ranks change it on the threads that they share.
func TestProductCurrentDevice(t *testing.T) {
	wellOnEach(t, 3, ccl.Options{}, func(ctx context.Context, t *testing.T, r *on) { require.NoError(t, r.sums(ctx, 300)) })
}

// TestProductManyRanks: a communicator of many ranks, here of 4, starts from two ids, which two of
// them have made. A failure of the library in that is one of all ranks.
func TestProductManyRanks(t *testing.T) {
	native.ManyFrom(t, 4)
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		well(t, 4, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
			require.NoError(t, r.sums(ctx, 3))
			part, err := r.c.Split(ctx, r.me/2, 0) // of few
			require.NoError(t, err)
			require.NoError(t, part.Close())
		})
		for _, tc := range []struct{ fail, want string }{
			{"ncclCommInitRankScalable:0:2", "ncclCommInitRankScalable"}, {"ncclGetUniqueId:2:3", "ncclGetUniqueId"},
		} {
			knobRuns++
			t.Setenv("FAKE_FAIL", fmt.Sprintf("%s,run%d:1:1", tc.fail, knobRuns)) // counts begin anew when the knob changes
			for rank, err := range job(t, 4, ccl.Options{Backend: name}, rt, func(context.Context, *on) error { return nil }) {
				assert.Contains(t, failure(t, rank, err, ccl.ErrBackend).Error(), tc.want, "rank %d", rank)
			}
		}
	})
}
