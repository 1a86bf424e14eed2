//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// splits counts the runs of TestProductSplitLate with a failure.
var splits atomic.Int64

// TestProductSplitLate: ncclCommSplit of a communicator that does not block stores the child at its very end, and NULL after a
// failure (ncclCommInitRankFunc, src/init.cc of NCCL 2.18 on), into memory that its caller may have freed. Split makes the child
// by an id of its own instead: one that succeeds, and one that fails, leave nothing that the library could still write to.
func TestProductSplitLate(t *testing.T) {
	for _, tc := range []struct {
		name, fail string // of the two ranks' four starts, the third is that of a child
		want       error
	}{
		{"succeeds", "", nil},
		{"fails", "ncclCommInitRank:3:2", ccl.ErrBackend},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
				leaves(t, name)
				lib := fakeOf(t, name)
				broken := lib.Violations()
				t.Setenv("FAKE_NCCL_SPLIT_LATE_US", "100000")
				t.Setenv("FAKE_NCCL_INIT_TIMEOUT", "1")
				if tc.fail != "" {
					t.Setenv("FAKE_FAIL", fmt.Sprintf("%s,run%d:1:1", tc.fail, splits.Add(1))) // counts begin anew when the knob changes
				}
				for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
					child, err := r.c.Split(ctx, 0, 0)
					if err != nil {
						return err
					}
					x := r.mem(int32(r.me + 1))
					require.Equal(t, []int32{3}, r.ends(sumOf(child.On(r.s), x), x))
					return child.Close()
				}) {
					if tc.want == nil {
						assert.NoError(t, err, "rank %d", rank)
					} else {
						assert.ErrorIs(t, err, tc.want, "rank %d", rank)
						assert.ErrorContains(t, err, "Split", "rank %d", rank)
					}
				}
				require.Equal(t, broken, lib.Violations(), "calls inside a communicator that was freed")
			})
		})
	}
}
