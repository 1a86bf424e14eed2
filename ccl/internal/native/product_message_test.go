//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// TestProductFirstMessage: the library waits inside a first message for its other end, whether it is sent, received or one of a group,
// on the device or through it; all arrive, and later ones need not wait.
func TestProductFirstMessage(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		t.Setenv("FAKE_NCCL_CONNECT", "1000")
		well(t, 3, ccl.Options{Backend: name, Staged: true}, rt, func(ctx context.Context, r *on) {
			next, prev := (r.me+1)%3, (r.me+2)%3
			x, y := r.mem(int32(r.me)), r.mem(-1)
			for round := range 3 {
				var w ccl.Work
				switch { // rank 0 begins, so that there is no circle
				case r.me == 0:
					w = r.q.Send(ccl.BufOfMemory(x), next)
					require.NoError(t, w.Wait(ctx))
					w = r.q.Recv(ccl.BufOfMemory(y), prev)
				default:
					w = r.q.Recv(ccl.BufOfMemory(y), prev)
					require.NoError(t, w.Wait(ctx))
					w = r.q.Send(ccl.BufOfMemory(x), next)
				}
				require.Equal(t, []int32{int32(prev)}, r.ends(w, y), "round %d", round)
				w = r.q.SendRecv(ccl.BufOfMemory(y), next, ccl.BufOfMemory(x), prev) // the other way round
				require.Equal(t, []int32{int32(next)}, r.ends(w, y), "round %d", round)
				all := make([]int32, 3)
				require.NoError(t, ccl.AllToAllV(ctx, r.c, all, []int{1, 1, 1}, []int32{int32(r.me), int32(r.me), int32(r.me)}, []int{1, 1, 1}))
				require.Equal(t, []int32{0, 1, 2}, all, "round %d", round)
			}
		})
	})
}

// TestProductMessageAlone: the first message to a rank that never takes it, and the first from one that never sends, alone and in a
// group, on the device and through it, is a timeout on every rank, in bounded time, whether the library can make the call come back
// or not.
func TestProductMessageAlone(t *testing.T) {
	type call = func(ctx context.Context, r *on, x ccl.Buf) error
	calls := map[string]call{
		"Send":     func(ctx context.Context, r *on, x ccl.Buf) error { return r.q.Send(x, 1).Wait(ctx) },
		"Recv":     func(ctx context.Context, r *on, x ccl.Buf) error { return r.q.Recv(x, 1).Wait(ctx) },
		"SendRecv": func(ctx context.Context, r *on, x ccl.Buf) error { return r.q.SendRecv(x, 1, x, 1).Wait(ctx) },
		"group": func(ctx context.Context, r *on, x ccl.Buf) error {
			return r.q.Group(func(g ccl.Queue) error {
				g.Recv(x, 1)
				return nil
			}).Wait(ctx)
		},
		"on the host": func(ctx context.Context, r *on, _ ccl.Buf) error {
			return ccl.Send(ctx, r.c, []int32{1}, 1)
		},
		"a rank that ends": func(ctx context.Context, r *on, x ccl.Buf) error {
			return r.q.Send(x, 1).Wait(ctx)
		},
	}
	for what, call := range calls {
		for _, revokes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/revoke=%v", what, revokes), func(t *testing.T) {
				backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
					t.Setenv("FAKE_NCCL_CONNECT", "1000")
					if revokes {
						leaves(t, name)
					} else {
						t.Setenv("FAKE_FAIL", "ncclCommRevoke:0:3,"+name+":1:1")
					}
					broken := fakeOf(t, name).Violations()
					code := ccl.ErrTimeout
					if what == "a rank that ends" {
						code = ccl.ErrAborted
					}
					start := time.Now()
					for rank, err := range job(t, 3, ccl.Options{Backend: name, Staged: true, Timeout: 500 * time.Millisecond}, rt, func(ctx context.Context, r *on) error {
						if r.me == 0 {
							return call(ctx, r, ccl.BufOfMemory(r.mem(1)))
						}
						if r.me == 1 && code == ccl.ErrAborted {
							time.Sleep(50 * time.Millisecond) // right either way
							r.c.Abort(errors.New("enough"))
						}
						<-r.c.Done()
						return r.c.Err()
					}) {
						failure(t, rank, err, code)
					}
					assert.Less(t, time.Since(start), soon)
					assert.Equal(t, broken, fakeOf(t, name).Violations())
				})
			})
		}
	}
}
