//go:build (nccl || rccl) && cgo && linux

package native

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/engine"
	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/gpu"
)

// keeps fails the test if a communicator is used in it that a real library would have freed.
func keeps(t *testing.T, v *vendor) cside.Library {
	open(t, v)
	c, err := cside.Open(os.Getenv(v.search.Env))
	require.NoError(t, err)
	before := c.Violations()
	t.Cleanup(func() { require.Equal(t, before, c.Violations(), "calls inside a communicator that was freed") })
	return c
}

// once is vendors for what lasts and is of the code that both share.
func once(t *testing.T, f func(t *testing.T, v *vendor)) { f(t, compiledIn[0]) }

// TestAskedWhileAborted: Abort frees the communicator only once ncclCommGetAsyncError has come back, however long it takes:
// a call whose connections are made asks, and a Split.
func TestAskedWhileAborted(t *testing.T) {
	for _, tc := range []struct {
		name string
		call func(ctx context.Context, r *rank, m *gpu.Mem[int32]) error
	}{
		{"call", func(_ context.Context, r *rank, m *gpu.Mem[int32]) error { return r.issueOne(m) }},
		{"split", func(ctx context.Context, r *rank, _ *gpu.Mem[int32]) error {
			_, err := r.Engine.(engine.Splitter).Split(ctx, engine.Group{Size: 2, Parent: r.Engine})
			return err
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			once(t, func(t *testing.T, v *vendor) {
				lib := keeps(t, v)
				r := world(t, v, 2)[0] // rank 1 never calls
				t.Setenv("FAKE_NCCL_CONNECT", "1")
				t.Setenv("FAKE_NCCL_GAE_US", "250000") // longer than Abort waits for a call
				m := r.memory(t)
				done := make(chan error, 1)
				go func() { done <- tc.call(t.Context(), r, m) }()
				require.Eventually(t, func() bool { return lib.Asking() > 0 }, limit, time.Millisecond)
				r.Abort()
				select {
				case err := <-done:
					assert.ErrorIs(t, err, errAborted)
				case <-time.After(limit):
					t.Fatal("the call has not come back")
				}
				require.NoError(t, r.Close())
				require.NoError(t, m.Free())
			})
		})
	}
}

// TestSplitGivenUp: the child of a Split whose ctx has ended is made all the same, later, into memory that is still there,
// and then it goes, whether the parent lives or not.
func TestSplitGivenUp(t *testing.T) {
	for _, end := range []string{"closed", "aborted"} {
		t.Run(end, func(t *testing.T) {
			once(t, func(t *testing.T, v *vendor) {
				leaks(t, v)
				keeps(t, v)
				ranks := world(t, v, 2)
				t.Setenv("FAKE_NCCL_SPLIT_LATE_US", "150000")
				for _, err := range all(2, func(i int) error {
					ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
					defer cancel()
					g := engine.Group{Rank: i, Size: 2, Device: i, Parent: ranks[i].Engine, Key: i}
					_, err := ranks[i].Engine.(engine.Splitter).Split(ctx, g)
					if end == "aborted" {
						ranks[i].Abort()
					}
					return err
				}) {
					require.ErrorIs(t, err, context.DeadlineExceeded)
				}
			})
		})
	}
}

// TestCrosswise: two communicators on the same devices make their first calls in another order on each rank, from two
// goroutines, and the library waits for the peers of each.
func TestCrosswise(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		worlds := [2][]*rank{world(t, v, 2), world(t, v, 2)}
		t.Setenv("FAKE_NCCL_CONNECT", "1")
		var memory [2][2]*gpu.Mem[int32]
		for w, ranks := range worlds {
			for i, r := range ranks {
				memory[w][i] = r.memory(t)
			}
		}
		call := func(w, i int) chan error {
			done := make(chan error, 1)
			go func() {
				err := worlds[w][i].issueOne(memory[w][i])
				if err == nil {
					err = worlds[w][i].wait(within(t))
				}
				done <- err
			}()
			return done
		}
		lib := keeps(t, v)
		first := []chan error{call(0, 0), call(1, 1)}
		require.Eventually(t, func() bool { return lib.Live()[5] == 2 }, limit, time.Millisecond, "both are under way")
		for _, done := range append(first, call(1, 0), call(0, 1)) {
			select {
			case err := <-done:
				require.NoError(t, err)
			case <-time.After(soon):
				for _, r := range append(worlds[0], worlds[1]...) {
					r.Abort()
				}
				t.Fatal("two communicators wait for each other's device")
			}
		}
		for _, ms := range memory {
			for _, m := range ms {
				require.NoError(t, m.Free())
			}
		}
	})
}

// TestAbortLasts: while ncclCommAbort waits, another communicator of the device goes on.
func TestAbortLasts(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		lib := keeps(t, v)
		stuck, well := world(t, v, 1)[0], world(t, v, 1)[0]
		m := well.memory(t)
		require.NoError(t, well.issueOne(m))
		t.Setenv("FAKE_NCCL_ABORT_US", "1000000")
		stuck.Abort()
		e := stuck.Engine.(shrinker).end
		require.Eventually(t, func() bool { return lib.Aborting() > 0 }, limit, time.Millisecond)
		require.NoError(t, well.issueOne(m))
		require.NoError(t, well.wait(within(t)))
		select {
		case <-e.ended:
			t.Fatal("the call has waited for the other's Abort")
		default:
		}
		require.NoError(t, m.Free())
	})
}

// TestSplitWaits: a Split waits for a call of the parent whose connections are made, but not beyond its ctx, and has not
// begun then.
func TestSplitWaits(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		keeps(t, v)
		ranks := world(t, v, 2)
		t.Setenv("FAKE_NCCL_CONNECT", "1")
		memory := []*gpu.Mem[int32]{ranks[0].memory(t), ranks[1].memory(t)}
		split := func(ctx context.Context, i int) error {
			g := engine.Group{Rank: i, Size: 2, Device: i, Parent: ranks[i].Engine, Key: i}
			e, err := ranks[i].Engine.(engine.Splitter).Split(ctx, g)
			if err != nil {
				return err
			}
			return e.Close()
		}
		issued := make(chan error, 1)
		go func() { issued <- ranks[0].issueOne(memory[0]) }()
		require.Eventually(t, func() bool { return ranks[0].Engine.(shrinker).state.Load() != 0 }, limit, time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, split(ctx, 0), context.DeadlineExceeded)
		require.NoError(t, ranks[1].issueOne(memory[1]))
		require.NoError(t, <-issued)
		each(t, 2, func(i int) error { return split(within(t), i) })
		each(t, 2, func(i int) error { return ranks[i].wait(within(t)) })
		for _, m := range memory {
			require.NoError(t, m.Free())
		}
	})
}
