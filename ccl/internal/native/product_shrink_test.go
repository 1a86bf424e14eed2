//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// shrinks counts the runs with a failure.
var shrinks atomic.Int64

// TestProductShrink: after a rank has left the others shrink the Comm. The library shrinks its
// communicator, which was revoked and is freed by Close, where all ranks can; else they make a new
// one, as they do after an error of the library in that. An error of the network on one rank is one
// that ncclCommRevoke leaves.
func TestProductShrink(t *testing.T) {
	for _, tc := range []struct {
		name, fail string
		network    string // the rank whose network fails
		native     []int  // how many calls of ncclCommShrink may have been taken
	}{
		{"the library's", "", "", []int{2}},
		{"one rank cannot revoke", "ncclCommRevoke:1:3", "", []int{0}},
		{"none can revoke", "ncclCommRevoke:0:3", "", []int{0}},
		{"the library fails", "ncclCommShrink:0:3", "", []int{0}},
		{"the library fails on one rank", "ncclCommShrink:1:3", "", []int{0, 1}}, // the other may hear of it before it calls
		{"the network has failed on one rank", "", "0", []int{0}},
		{"the network has failed on the other", "", "2", []int{0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
				leaves(t, name)
				lib := fakeOf(t, name)
				broken, before := lib.Violations(), lib.Shrunk()
				t.Setenv("FAKE_NCCL_INIT_TIMEOUT", "2")
				if tc.network != "" {
					t.Setenv("FAKE_NCCL_NET", "1")
					t.Setenv("FAKE_NCCL_RANK", tc.network)
				}
				if tc.fail != "" {
					t.Setenv("FAKE_FAIL", fmt.Sprintf("%s,run%d:1:1", tc.fail, shrinks.Add(1))) // counts begin anew when the knob changes
				}
				start := time.Now()
				var summed sync.WaitGroup // a rank that is slow to see its calls done would hear of the failure in them, and leave
				summed.Add(3)
				well(t, 3, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
					err := r.sums(ctx, 2)
					summed.Done()
					summed.Wait()
					require.NoError(t, err)
					if r.me == 1 { // the others may be in the next call
						require.NoError(t, r.c.Close())
						return
					}
					x := r.mem(0)
					err = sumOf(r.q, x).Wait(ctx)
					var e *ccl.Error // ErrClosed, or what the library says, whichever is known first
					require.ErrorAs(t, err, &e, "a call without rank 1")
					child, err := r.c.Shrink(ctx)
					require.NoError(t, err)
					if err := closes(r.c); !errors.Is(err, ccl.ErrMismatch) {
						require.NoError(t, err)
					}
					require.NoError(t, x.Put([]int32{int32(10 + r.me)}))
					require.Equal(t, 2, child.Size())
					require.Equal(t, []int32{22}, r.ends(sumOf(child.On(r.s), x), x))
					require.NoError(t, child.Close())
				})
				assert.Less(t, time.Since(start), soon)
				require.Contains(t, tc.native, lib.Shrunk()-before)
				require.Equal(t, broken, lib.Violations())
			})
		})
	}
}
