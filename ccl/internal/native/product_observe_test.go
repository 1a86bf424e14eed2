//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// heard is what OnCall was told.
type heard struct {
	mu  sync.Mutex
	all []ccl.Observation
}

func (h *heard) onCall(o ccl.Observation) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, o)
}

// calls is that of calls on a device and of graphs, once there are n.
func (h *heard) calls(t testing.TB, n int) (list []ccl.Observation) {
	require.Eventually(t, func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		list = slices.Clone(h.all)
		return len(list) >= n
	}, soon, time.Millisecond, "OnCall was not told of %d calls", n)
	return list
}

// TestProductObserved: OnCall is told of each call on a device once, in order, with what it was, its bytes and its times, when the stream is
// known to have passed it: by Wait, by Synchronize of the stream, or by the Comm's own look; of a captured call only with its graph. The
// device's own time is of a call that it has made itself, and of a group as a whole.
func TestProductObserved(t *testing.T) {
	t.Setenv("FAKE_DELAY_US", "1000")
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		told := make([]heard, 2)
		require.NoError(t, errors.Join(observedJob(t, ccl.Options{Backend: name}, told, rt, func(ctx context.Context, r *on) error {
			x, y := r.mem(1, 2, 3), r.mem(1, 2, 3)
			b, in, h := ccl.BufOfMemory(x), ccl.InPlace(), &told[r.me]
			require.NoError(t, r.q.AllReduce(b, in, ccl.Max).Wait(ctx))
			h.calls(t, 1)
			r.q.AllReduce(b, in, ccl.Max) // the same: the shorter way
			r.q.AllReduce(b.From(0, 2), ccl.BufOfMemory(y).From(0, 2), ccl.Sum)
			r.q.Broadcast(b, 1)
			require.NoError(t, r.s.Synchronize())
			h.calls(t, 4)
			r.q.Group(func(g ccl.Queue) error {
				g.AllReduce(b.From(0, 1), in, ccl.Max)
				g.Send(b, 1-r.me)
				g.Recv(ccl.BufOfMemory(y), 1-r.me)
				return nil
			})
			r.q.Barrier()
			h.calls(t, 8)                             // the watch's look
			require.NoError(t, ccl.Barrier(ctx, r.c)) // with HIP no call is known to be done during a capture
			require.NoError(t, r.s.BeginCapture())
			r.q.AllReduce(b, in, ccl.Max)
			g, err := r.s.EndCapture()
			require.NoError(t, err)
			defer g.Close()
			for range 2 {
				require.NoError(t, g.Launch(r.s))
			}
			require.NoError(t, r.s.Synchronize())
			list := h.calls(t, 11)
			for i, want := range []struct {
				call  string
				bytes int
			}{
				{"AllReduce #1 int32 x 3 max", 12}, {"AllReduce #2 int32 x 3 max", 12}, {"AllReduce #3 int32 x 2 sum", 8}, {"Broadcast #4 int32 x 3 root 1", 12},
				{"AllReduce #5 int32 x 1 max", 4}, {fmt.Sprintf("Send #6 int32 x 3 peer %d", 1-r.me), 12}, {fmt.Sprintf("Recv #7 int32 x 3 peer %d", 1-r.me), 12}, {"Barrier #8", 0},
				{"Barrier #9", 0}, // on the host
				{"Graph #1 of 1 call", 0}, {"Graph #2 of 1 call", 0},
			} {
				o := list[i]
				assert.Equal(r.t, want.call, o.Call.String(), "%d", i)
				assert.Equal(r.t, want.bytes, o.Bytes, want.call)
				assert.Equal(r.t, ccl.Complete, o.Call.State, want.call)
				assert.GreaterOrEqual(r.t, o.Call.End, o.Call.Start, want.call)
				assert.NoError(r.t, o.Err, want.call)
				assert.Equal(r.t, "world", o.Comm)
				if i != 8 {
					assert.GreaterOrEqual(r.t, o.Took, time.Millisecond, want.call)
				}
				if i < 8 { // the fake's device takes a millisecond for the call, and one for the event behind it
					assert.GreaterOrEqual(r.t, o.OnDevice, 2*time.Millisecond, want.call)
					assert.Less(r.t, o.OnDevice, o.Took, want.call)
				} else {
					assert.Zero(r.t, o.OnDevice, want.call)
				}
			}
			assert.Equal(r.t, list[4].OnDevice, list[5].OnDevice)
			assert.Equal(r.t, list[4].OnDevice, list[6].OnDevice)
			return nil
		})...))
		for rank := range told {
			assert.Len(t, told[rank].all, 11, "rank %d", rank)
		}
	})
}

// observedJob is job, each rank of which has its own OnCall.
func observedJob(t *testing.T, o ccl.Options, told []heard, rt *gpu.Runtime, f func(ctx context.Context, r *on) error) []error {
	return jobWith(t, len(told), func(rank int) *ccl.Options {
		own := o
		own.OnCall = told[rank].onCall
		return &own
	}, rt, f)
}

// TestProductObservedFailure: calls and launches under way on a device when their Comm fails are told once, failed, with the
// failure.
func TestProductObservedFailure(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		t.Setenv("FAKE_NCCL_HANG", "3")
		t.Setenv("FAKE_NCCL_RANK", "1")
		told := make([]heard, 2)
		for rank, err := range observedJob(t, ccl.Options{Backend: name, Timeout: 1500 * time.Millisecond}, told, rt, func(ctx context.Context, r *on) error {
			x := r.mem(1)
			b, in := ccl.BufOfMemory(x), ccl.InPlace()
			for range 2 {
				require.NoError(r.t, r.q.AllReduce(b, in, ccl.Max).Wait(ctx))
			}
			r.q.AllReduce(b, in, ccl.Max)
			w := r.q.AllReduce(b, in, ccl.Max)
			err := w.Wait(ctx)
			for i, o := range told[r.me].calls(t, 4) {
				assert.Equal(r.t, fmt.Sprintf("AllReduce #%d int32 x 1 max", i+1), o.Call.String())
				if i < 2 {
					assert.NoError(r.t, o.Err)
					continue
				}
				assert.Equal(r.t, ccl.Failed, o.Call.State)
				assert.Equal(r.t, o.Call.Seq, failure(t, r.me, o.Err, ccl.ErrTimeout).Mine.Seq)
			}
			require.ErrorIs(t, r.q.AllReduce(b, in, ccl.Max).Wait(ctx), ccl.ErrTimeout, "after the failure")
			return err
		}) {
			failure(t, rank, err, ccl.ErrTimeout)
			assert.Len(t, told[rank].all, 4, "rank %d", rank)
		}
	})
}
