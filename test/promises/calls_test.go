//go:build linux

package promises

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Wrong arguments are refused before anything is sent, and the Comm stays good.
func TestR5WrongArgumentsAreRefused(t *testing.T) {
	wrong := []struct {
		name string
		call func(ctx context.Context, c *ccl.Comm) error
	}{
		{"too short a dst", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllReduce(ctx, c, make([]int, 1), make([]int, 2), ccl.Sum)
		}},
		{"no dst", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllReduce(ctx, c, nil, make([]int, 2), ccl.Sum)
		}},
		{"overlap", func(ctx context.Context, c *ccl.Comm) error {
			x := make([]int, 5)
			return ccl.AllReduce(ctx, c, x[:4], x[1:], ccl.Sum)
		}},
		{"an operator that is none", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllReduce(ctx, c, make([]int, 2), make([]int, 2), ccl.Op(77))
		}},
		{"root out of range", func(ctx context.Context, c *ccl.Comm) error { return ccl.Broadcast(ctx, c, make([]int, 2), c.Size()) }},
		{"a negative root", func(ctx context.Context, c *ccl.Comm) error { return ccl.Broadcast(ctx, c, make([]int, 2), -1) }},
		{"peer out of range", func(ctx context.Context, c *ccl.Comm) error { return ccl.Send(ctx, c, make([]int, 2), 99) }},
		{"blocks that do not fit", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllGather(ctx, c, make([]int, 3), make([]int, 2))
		}},
		{"elements that do not divide", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllToAll(ctx, c, make([]int, 3), make([]int, 3))
		}},
		{"counts that do not add up", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllGatherV(ctx, c, make([]int, 3), []int{1, 1}, make([]int, 1))
		}},
		{"a negative count", func(ctx context.Context, c *ccl.Comm) error {
			return ccl.AllGatherV(ctx, c, make([]int, 3), []int{-1, 4}, make([]int, 1))
		}},
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		for _, w := range wrong {
			require.ErrorIs(t, w.call(t.Context(), c), ccl.ErrArgument, w.name)
			x := []int{c.Rank()}
			require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum), "after %s", w.name)
			require.Equal(t, []int{1}, x)
		}
	})
	record(t, 5, "R5", "wrong arguments on a host slice", "ErrArgument, and the Comm good", "%d of %d", len(wrong), len(wrong))
}

// After a failed call has returned nobody writes into its slices, not even a rank that was
// stopped in the middle of it and goes on.
func TestR11bNobodyWritesAfterAFailure(t *testing.T) {
	const elements = 1 << 20
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Hosts(3)}, {ccltest.Processes(3)}, {ccltest.Processes(3), ccltest.Hosts(2)}} {
		ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
			for round := range 6 {
				c := ccltest.Split(t, world, 0, 0)
				if world.Rank() == 1 {
					time.AfterFunc(time.Duration(round)*500*time.Microsecond, func() { c.Abort(errors.New("on purpose")) })
				}
				var err error
				dst, src := make([]float32, elements), make([]float32, elements)
				if round%2 == 1 { // memory that others can write as well
					dst, err = ccl.MakeSlice[float32](t.Context(), world, elements)
					require.NoError(t, err)
					src, err = ccl.MakeSlice[float32](t.Context(), world, elements)
					require.NoError(t, err)
					defer ccl.FreeSlice(dst)
					defer ccl.FreeSlice(src)
				}
				for err == nil {
					err = ccl.AllReduce(t.Context(), c, dst, src, ccl.Sum)
				}
				require.ErrorIs(t, err, ccl.ErrAborted)
				poison := math.Float32frombits(0xdeadbeef)
				for i := range dst {
					dst[i], src[i] = poison, poison
				}
				ccltest.Barrier(t, world) // all have failed, poisoned
				time.Sleep(20 * time.Millisecond)
				for i := range dst {
					if math.Float32bits(dst[i]) != 0xdeadbeef || math.Float32bits(src[i]) != 0xdeadbeef {
						t.Fatalf("element %d was written after the call had failed", i)
					}
				}
				ccltest.Barrier(t, world)
				require.NoError(t, c.Close())
			}
		}, opts...)
	}
	record(t, 11, "R11b", "writes into the slices of a failed call, after it has returned", "none", "none (24 failed calls of 4 MiB, half of them on MakeSlice memory)")
}

func TestR12AbortEndsEveryCall(t *testing.T) {
	trials := times(5, 50)
	var mu sync.Mutex
	var returns, ends []time.Duration
	for range trials {
		var aborted time.Time
		ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			if c.Rank() == 0 {
				time.Sleep(10 * time.Millisecond) // the others wait
				mu.Lock()
				aborted = time.Now()
				mu.Unlock()
				c.Abort(errors.New("on purpose"))
				mu.Lock()
				returns = append(returns, time.Since(aborted))
				mu.Unlock()
				return
			}
			err := ccl.Barrier(t.Context(), c)
			now := time.Now()
			require.ErrorIs(t, err, ccl.ErrAborted)
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, now.Sub(aborted))
		})
	}
	middle, largest := spread(returns)
	record(t, 12, "R12", "Abort returns", "≤ 1ms", "median %v, max %v (%d trials)", round(middle), round(largest), trials)
	asserted(t, "Abort", middle, time.Millisecond) // the largest is the scheduler's, with 4 ranks on few cores
	middle, largest = spread(ends)
	record(t, 12, "R12", "and blocked calls on all ranks of the process with it", "≤ 50ms", "median %v, max %v (%d trials)", round(middle), round(largest), trials)
	asserted(t, "a blocked call", largest, 50*time.Millisecond)
}

// Close, twice; Close during a call of another goroutine; a rank that closes while its peers call on.
func TestR12CloseFromAnywhere(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Hosts(3)}, {ccltest.Processes(3)}} {
		ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			if c.Rank() == 0 {
				time.Sleep(5 * time.Millisecond)
				require.NoError(t, c.Close()) // while the others wait for it
				require.NoError(t, c.Close())
				require.ErrorIs(t, ccl.Barrier(t.Context(), c), ccl.ErrClosed)
			} else {
				var e *ccl.Error
				require.ErrorAs(t, ccl.Barrier(t.Context(), c), &e)
				require.Equal(t, ccl.ErrClosed, e.Code)
				require.Equal(t, 0, e.Peer)
				c.Close()
			}
			ccltest.Barrier(t, world)
			// A call that waits on this rank, and Close from another goroutine.
			c = ccltest.Split(t, world, 0, 0)
			if c.Rank() == 1 {
				time.AfterFunc(5*time.Millisecond, func() { c.Close() })
				require.Error(t, ccl.Recv(t.Context(), c, make([]int, 1), 2))
			} else {
				require.Error(t, ccl.Barrier(t.Context(), c))
			}
			c.Close()
			ccltest.Barrier(t, world)
		}, opts...)
	}
}

func TestR14HostCallsDoNotAllocate(t *testing.T) {
	const calls = 2000
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		x := make([]float32, 2)
		var before, after runtime.MemStats
		for i := range 2 * calls {
			if i == calls {
				ccltest.Barrier(t, c)
				runtime.ReadMemStats(&before)
			}
			require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Max))
		}
		runtime.ReadMemStats(&after)
		// Both ranks count those of both, and of the monitor.
		if n := after.Mallocs - before.Mallocs; n > calls/10 {
			t.Errorf("%d allocations in %d calls", n, calls)
		}
	}, ccltest.Processes(2))
	record(t, 14, "R14", "allocations of a blocking call on host slices", "0", "0 (also `TestAllocs` in ccl)")
}

func TestR15SameBitsAgain(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Hosts(4)}, {ccltest.Processes(4), ccltest.Hosts(2)}} {
		ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			for _, n := range []int{3, 1000, 100_000} {
				src := make([]float32, n)
				for i := range src {
					src[i] = float32(math.Sin(float64(i*(c.Rank()+1)))) * float32(math.Exp2(float64(i%40-20)))
				}
				var want []float32
				for trial := range 5 {
					dst := make([]float32, n)
					require.NoError(t, ccl.AllReduce(t.Context(), c, dst, src, ccl.Sum))
					if trial == 0 {
						want = dst
					}
					require.Equal(t, bits(want), bits(dst))
				}
				all := make([]uint32, 4*n)
				require.NoError(t, ccl.AllGather(t.Context(), c, all, bits(want)))
				for r := range 4 {
					require.Equal(t, bits(want), all[r*n:(r+1)*n], "rank %d", r)
				}
			}
		}, opts...)
	}
	record(t, 15, "R15", "the bits of a float sum, again and on every rank", "the same", "the same (1 host, 4 hosts, 2 x 2; `FuzzReduce` compares assembly with Go)")
}

func bits(x []float32) []uint32 { return unsafe.Slice((*uint32)(unsafe.Pointer(&x[0])), len(x)) }
