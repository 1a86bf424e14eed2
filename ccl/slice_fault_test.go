//go:build fault && linux

package ccl_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/internal/inject"
)

// A rank is stopped while it writes into another's result, which is a part of a slice. The other's call ends, and goes
// on with its slice; then the first goes on, too. It finds nothing to write into, and what lies beside the result is
// as the program has it, at any time.
func TestStoppedWriterOfPartOfASlice(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		const n, from, to = 1 << 20, 100_001, 900_003
		before := 0
		for try, stop := range []string{"", "cpu.write:1:stop:2500ms", "cpu.write:4:stop:2500ms"} {
			c, err := world.Split(ctx, 0, world.Rank())
			require.NoError(t, err)
			arena, err := ccl.MakeSlice[int64](ctx, world, n)
			require.NoError(t, err)
			for i := range arena {
				arena[i] = 1
			}
			part := arena[from:to]
			require.NoError(t, ccl.AllReduce(ctx, c, part, part, ccl.Sum))
			require.NoError(t, ccl.Barrier(ctx, world))
			if stop == "" {
				// What all of these calls need is made: some processors stage what others read where it lies.
				for _, x := range [][]int64{make([]int64, n), arena, part, arena[:from], arena[to:]} {
					require.NoError(t, ccl.AllReduce(ctx, world, x, x, ccl.Max))
				}
				require.NoError(t, c.Close())
				ccl.FreeSlice(arena)
				require.NoError(t, ccl.Barrier(ctx, world))
				before = sharedKiB(t)
				continue
			}
			if world.Rank() == 1 {
				require.NoError(t, inject.Plan(stop))
				err := ccl.AllReduce(ctx, c, part, part, ccl.Sum)
				require.NoError(t, inject.Plan(""))
				require.ErrorIs(t, err, ccl.ErrTimeout)
			} else {
				beside := []func() error{worker(arena[from-64 : from]), worker(arena[to : to+64]), worker(arena[n-1000:])}
				limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				began := time.Now()
				err := ccl.AllReduce(limited, c, part, part, ccl.Sum)
				require.Less(t, time.Since(began), 2*time.Second, "the other has gone on: it was waited for")
				cancel()
				require.ErrorIs(t, err, ccl.ErrTimeout)
				for i := range part {
					part[i] = -7
				}
				require.NoError(t, ccl.Barrier(ctx, world)) // the other goes on
				for i, x := range part {
					if x != -7 {
						t.Fatalf("element %d is %d: it was written after the call had failed", i, x)
					}
				}
				for _, stop := range beside {
					require.NoError(t, stop())
				}
				require.Equal(t, []int64{1, 1, 1}, []int64{arena[0], arena[from-65], arena[to+64]})
			}
			if world.Rank() == 1 {
				require.NoError(t, ccl.Barrier(ctx, world))
			}
			require.NoError(t, ccl.Barrier(ctx, world))
			// All of the slice can be used, also together.
			for i := range arena {
				arena[i] = int64(world.Rank() + try)
			}
			for _, x := range [][]int64{arena, part, arena[:from], arena[to:]} {
				require.NoError(t, ccl.AllReduce(ctx, world, x, x, ccl.Max))
			}
			for i, x := range arena {
				if x != int64(1+try) {
					t.Fatalf("element %d is %d", i, x)
				}
			}
			require.NoError(t, c.Close())
			ccl.FreeSlice(arena)
			require.NoError(t, ccl.Barrier(ctx, world))
			// The stopped rank has written one piece where the result no longer was. The memory of a Comm that has failed goes back at a
			// beat of the monitor.
			require.Eventually(t, func() bool { return sharedKiB(t) <= before+try*256 }, long, time.Millisecond)
		}
	}, ccltest.Processes(2))
}

// A rank is stopped while it writes its block into the root's results. The root's call ends, and its memory is its own: when the
// other goes on, it finds nothing to write into.
func TestStoppedWriterIntoTheRoot(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		const n = 1 << 20
		c := ccltest.Split(t, world, 0, world.Rank())
		dst, err := ccl.MakeSlice[int64](ctx, world, n)
		require.NoError(t, err)
		defer ccl.FreeSlice(dst)
		src := make([]int64, n/2)
		for i := range src {
			src[i] = int64(1 + world.Rank())
		}
		require.NoError(t, ccl.Gather(ctx, c, dst, src, 0))
		require.NoError(t, ccl.Barrier(ctx, world))
		if world.Rank() == 1 {
			require.NoError(t, inject.Plan("cpu.write:4:stop:2500ms"))
			err := ccl.Gather(ctx, c, nil, src, 0)
			require.NoError(t, inject.Plan(""))
			require.ErrorIs(t, err, ccl.ErrTimeout)
			require.NoError(t, ccl.Barrier(ctx, world))
			return
		}
		for i, x := range dst {
			if x != int64(1+i/len(src)) {
				t.Fatalf("element %d is %d", i, x)
			}
		}
		limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		require.ErrorIs(t, ccl.Gather(limited, c, dst, src, 0), ccl.ErrTimeout)
		require.Less(t, time.Since(began), 2*time.Second, "the other has gone on: it was waited for")
		for i := range dst {
			dst[i] = -7
		}
		require.NoError(t, ccl.Barrier(ctx, world)) // the other goes on
		for i, x := range dst {
			if x != -7 {
				t.Fatalf("element %d is %d: it was written after the call had failed", i, x)
			}
		}
	}, ccltest.Processes(2))
}

// Ranks of one process: one is late to touch the other's memory, before or after it has made a pointer of what was
// offered. The other's call has failed by then, and if that has returned, its memory is something else, or nothing.
func TestLateTouchOfMemoryThatIsGone(t *testing.T) {
	calls := map[string]func(ctx context.Context, c *ccl.Comm, dst, src []float32) error{
		"ReduceScatter": func(ctx context.Context, c *ccl.Comm, dst, src []float32) error {
			return ccl.ReduceScatter(ctx, c, dst[:len(dst)/2], src, ccl.Sum)
		},
		"AllReduce": func(ctx context.Context, c *ccl.Comm, dst, src []float32) error {
			return ccl.AllReduce(ctx, c, dst, src, ccl.Sum)
		},
		"Broadcast": func(ctx context.Context, c *ccl.Comm, dst, _ []float32) error {
			return ccl.Broadcast(ctx, c, dst, 0)
		},
		"AllToAll": func(ctx context.Context, c *ccl.Comm, dst, src []float32) error {
			return ccl.AllToAll(ctx, c, dst, src)
		},
		"AllToAllV": func(ctx context.Context, c *ccl.Comm, dst, src []float32) error {
			half := []int{len(src) / 2, len(src) / 2}
			return ccl.AllToAllV(ctx, c, dst, half, src, half)
		},
		"Gather": func(ctx context.Context, c *ccl.Comm, dst, src []float32) error {
			return ccl.Gather(ctx, c, dst, src[:len(src)/2], 0)
		},
		"SendRecv": func(ctx context.Context, c *ccl.Comm, dst, src []float32) error {
			return ccl.SendRecv(ctx, c, dst, 1-c.Rank(), src, 1-c.Rank())
		},
	}
	defer inject.Plan("")
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			for _, plan := range []string{
				"cpu.touch:1:delay:150ms,cpu.touched:1:gc", "cpu.touch:2:delay:150ms,cpu.touched:2:gc",
				"cpu.touched:1:delay:150ms", "cpu.touched:2:delay:150ms",
			} {
				for _, made := range []bool{false, true} {
					require.NoError(t, inject.Plan(plan))
					var all sync.WaitGroup
					for _, b := range boot.Local(2) {
						all.Go(func() { lateTouch(t, b, call, made) })
					}
					all.Wait()
				}
			}
		})
	}
}

// lateTouch is a rank that gives up, and its memory with that.
func lateTouch(t *testing.T, b ccl.Bootstrap, call func(ctx context.Context, c *ccl.Comm, dst, src []float32) error, made bool) {
	c, err := ccl.NewComm(t.Context(), b, nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	dst, src := make([]float32, 1<<20), make([]float32, 1<<20)
	if made {
		dst, err = ccl.MakeSlice[float32](t.Context(), c, 1<<20)
		if err == nil {
			src, err = ccl.MakeSlice[float32](t.Context(), c, 1<<20)
		}
	}
	time.AfterFunc(80*time.Millisecond, func() { c.Abort(errors.New("on purpose")) })
	for err == nil {
		err = call(t.Context(), c, dst, src)
	}
	ccl.FreeSlice(dst)
	ccl.FreeSlice(src)
	dst, src = nil, nil
	if !errors.Is(err, ccl.ErrAborted) {
		t.Error(err)
	}
	for range 3 {
		runtime.GC()
	}
}
