//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// TestProductStreamClosed: a program that has synchronized a stream may close it, though no mark has told the Comm that its
// calls are done: a Wait of such a call returns nil, and the Comm goes on with other streams.
func TestProductStreamClosed(t *testing.T) {
	wellOnEach(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, r *on) {
		x := r.mem(1)
		for range 5 {
			s, err := r.d.NewStream()
			require.NoError(t, err)
			w := r.c.On(s).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
			require.NoError(t, s.Synchronize())
			require.NoError(t, s.Close())
			require.NoError(t, w.Wait(ctx))
		}
		require.NoError(t, r.goesOn(ctx))
	})
}

// goesOn is an error if the Comm fails in some ticks of the watch, or in calls after them.
func (r *on) goesOn(ctx context.Context) error {
	for range 5 {
		time.Sleep(10 * time.Millisecond)
		if err := r.c.Err(); err != nil {
			return err
		}
	}
	return r.sums(ctx, 3)
}

// TestProductStreamLeft: a stream that is closed with calls in progress runs them all the same, and the Comm knows when they are done.
func TestProductStreamLeft(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		t.Setenv("FAKE_DELAY_US", "30000")
		well(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
			x, y := r.mem(1), r.mem(int32(r.me+1))
			s, err := r.d.NewStream()
			require.NoError(t, err)
			r.c.On(s).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
			w := sumOf(r.c.On(s), y)
			require.NoError(t, s.Close())
			require.NoError(t, w.Wait(ctx))
			require.Equal(t, []int32{3}, r.get(y))
			require.NoError(t, r.sums(ctx, 3))
		})
	})
}

// mute is a stream of a package that tells nobody of its end.
type mute struct {
	*gpu.Stream
	closed bool
}

func (m *mute) Handle() (uintptr, bool) {
	h, _ := m.Stream.Handle()
	return h, !m.closed
}

// Observe is not what package ccl asks for.
func (*mute) Observe() {}

// TestProductStreamGone: where nobody tells, a Work of a stream that was closed says so, and the Comm is well.
func TestProductStreamGone(t *testing.T) {
	wellOnEach(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, r *on) {
		x := r.mem(1)
		require.NoError(t, r.sums(ctx, 1)) // connections
		s := &mute{Stream: r.s}
		w := r.c.On(s).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
		s.closed = true
		require.ErrorIs(t, w.Wait(ctx), ccl.ErrArgument)
		require.NoError(t, r.goesOn(ctx))
	})
}

// TestProductElsewhere: a call on a stream, or on memory, of another device is refused on the rank that makes it, and named to the
// other, which waits in its own call: nothing hangs.
func TestProductElsewhere(t *testing.T) {
	for _, tc := range []struct {
		name  string
		issue func(r *on, near, far *gpu.Mem[int32], s *gpu.Stream) ccl.Work
		what  string // is on the other device
	}{
		{"stream", func(r *on, near, _ *gpu.Mem[int32], s *gpu.Stream) ccl.Work {
			return r.c.On(s).AllReduce(ccl.BufOfMemory(near), ccl.InPlace(), ccl.Max)
		}, "On: the *PACKAGE.Stream is"},
		{"memory", func(r *on, _, far *gpu.Mem[int32], _ *gpu.Stream) ccl.Work {
			return r.q.AllReduce(ccl.BufOfMemory(far), ccl.InPlace(), ccl.Max)
		}, "AllReduce: dst: the memory is"},
		{"memory of the source", func(r *on, near, far *gpu.Mem[int32], _ *gpu.Stream) ccl.Work {
			return r.q.AllReduce(ccl.BufOfMemory(near), ccl.BufOfMemory(far), ccl.Max)
		}, "AllReduce: src: the memory is"},
		{"memory, in a group", func(r *on, near, far *gpu.Mem[int32], _ *gpu.Stream) ccl.Work {
			return r.q.Group(func(g ccl.Queue) error {
				g.AllReduce(ccl.BufOfMemory(near), ccl.InPlace(), ccl.Max)
				g.AllReduce(ccl.BufOfMemory(far), ccl.InPlace(), ccl.Max)
				return nil
			})
		}, "AllReduce: dst: the memory is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
				leaves(t, name)
				start := time.Now()
				for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) error {
					x := r.mem(1)
					if err := r.sums(ctx, 1); err != nil {
						return err
					}
					if r.me == 0 {
						return r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max).Wait(ctx)
					}
					d, err := rt.Device(5)
					require.NoError(t, err)
					s, err := d.NewStream()
					require.NoError(t, err)
					defer s.Close()
					far, err := gpu.Alloc[int32](d, 1)
					require.NoError(t, err)
					defer far.Free()
					return tc.issue(r, x, far, s).Wait(ctx)
				}) {
					what := strings.Replace(tc.what, "PACKAGE", rt.Package, 1) + " on device 5, the Comm on device 1"
					if rank == 1 {
						assert.Contains(t, failure(t, rank, err, ccl.ErrArgument).Error(), "rank 1: "+what)
						continue
					}
					e := failure(t, rank, err, ccl.ErrMismatch)
					assert.Equal(t, 1, e.Peer)
					assert.Contains(t, e.Error(), what)
				}
				assert.Less(t, time.Since(start), soon)
			})
		})
	}
}

// TestProductGraphHangs: a launch of a graph with calls of the Comm is watched like a call, on whatever stream: one that hangs is a
// timeout, and a failure of the library in it the Comm's.
func TestProductGraphHangs(t *testing.T) {
	for _, tc := range []struct {
		name, knob, value string
		timeout           time.Duration
		code              ccl.Code
	}{
		{"hang", "FAKE_NCCL_HANG", "3", 300 * time.Millisecond, ccl.ErrTimeout},
		{"error", "FAKE_NCCL_ASYNC", "3:6", long, ccl.ErrBackend},
	} {
		t.Run(tc.name, func(t *testing.T) {
			backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
				leaves(t, name)
				t.Setenv(tc.knob, tc.value)
				t.Setenv("FAKE_NCCL_RANK", "1")
				for rank, err := range job(t, 2, ccl.Options{Backend: name, Timeout: tc.timeout}, rt, func(ctx context.Context, r *on) error {
					x := r.mem(1)
					if err := errors.Join(r.sums(ctx, 1), r.meet(ctx)); err != nil {
						return err
					}
					require.NoError(t, r.s.BeginCapture())
					r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
					g, err := r.s.EndCapture()
					require.NoError(t, err)
					other, err := r.d.NewStream()
					require.NoError(t, err)
					err = r.meet(ctx) // only the launches have a limit; the other rank may have passed it before this one comes to see that
					for i := 0; i < 2 && err == nil; i++ {
						err = g.Launch(other)
					}
					for r.c.Err() == nil && ctx.Err() == nil {
						time.Sleep(time.Millisecond)
					}
					return errors.Join(r.c.Err(), err, g.Close(), other.Wait(ctx), other.Close())
				}) {
					failure(t, rank, err, tc.code)
				}
			})
		})
	}
}

// TestProductCaptureBesideWatch: another stream is captured while the Comm watches its own, and the graph is whole.
func TestProductCaptureBesideWatch(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		t.Setenv("FAKE_CAPTURE", map[string]string{"nccl": "global", "rccl": "hip"}[name])
		t.Setenv("FAKE_DELAY_US", "2000")
		well(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
			x := r.mem(1)
			other, err := r.d.NewStream()
			require.NoError(t, err)
			var last ccl.Work
			for range 50 {
				last = r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max)
			}
			require.NoError(t, other.BeginCapture())
			time.Sleep(50 * time.Millisecond) // ticks of the watch
			require.NoError(t, x.SetOn(other, 0))
			g, err := other.EndCapture()
			require.NoError(t, err, "the capture was broken")
			require.NoError(t, errors.Join(last.Wait(ctx), g.Close(), other.Close()))
		})
	})
}
