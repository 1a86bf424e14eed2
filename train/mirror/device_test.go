//go:build linux && cgo && nccl

package mirror_test

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/mirror"
)

// counted is a device's Memory that counts its copies, and may fail.
type counted struct {
	*device.Memory
	gets, puts int
	fail       error
}

func (c *counted) Get(dst []byte, src ccl.Buf) error { c.gets++; return c.Memory.Get(dst, src) }
func (c *counted) Put(dst ccl.Buf, src []byte) error {
	c.puts++
	return errors.Join(c.fail, c.Memory.Put(dst, src))
}

// memoryOf is the memory of a device of its own, and n numbers there.
func memoryOf(t testing.TB, number, n int) (*device.Memory, ccl.Buf) {
	d, err := cuda.At(number)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	mem, err := device.New(d, s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, errors.Join(mem.Close(), s.Close())) })
	b, err := mem.Alloc(ccl.TypeFloat32, n)
	require.NoError(t, err)
	return mem, b
}

func bytesOf(x []float32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)) }

// State in the memory of a device comes back to a rank that has lost it, bit for bit, beside state of the host. Of replicas nothing
// is copied to the host before a rank needs it.
func TestDeviceState(t *testing.T) {
	gputest.Fake(t, "one device does not do for three ranks")
	const n = 5<<18 + 1 // more than a window of pinned memory, which has 4 MiB
	for name, tc := range map[string]struct {
		shard      func(int) int
		gets, puts [3]int // by rank
		fail       bool
	}{
		"mirrored":          {nil, [3]int{3, 0, 3}, [3]int{1, 1, 1}, false},
		"replicas":          {func(int) int { return 0 }, [3]int{1, 0, 0}, [3]int{0, 1, 0}, false},
		"it cannot be read": {nil, [3]int{}, [3]int{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				ctx, rank := t.Context(), c.Rank()
				mem, b := memoryOf(t, c.Place().Local, n)
				on, count := &counted{Memory: mem}, []int64{0}
				state := []ccl.Buf{ccl.BufOf(count), b}
				at := func(step int) []float32 { // the state after a step
					x, who := make([]float32, n), float32(rank)
					if tc.shard != nil {
						who = 0
					}
					for i := range x {
						x[i] = float32(i%1000) + 1000*who + float32(step)
					}
					return x
				}
				m := mirror.New(&mirror.Options{Shard: tc.shard, On: on})
				defer func() { m.Close() }()
				step, err := m.Restore(ctx, c, nil, state...)
				require.NoError(t, err)
				require.Equal(t, -1, step)
				for step := range 3 {
					require.NoError(t, mem.Put(b, bytesOf(at(step))))
					count[0] = int64(10 * step)
					require.NoError(t, m.Save(ctx, step, state...))
				}
				require.NoError(t, m.Wait(ctx))

				if rank == 1 { // in its place comes one that knows nothing
					require.NoError(t, m.Close())
					on = &counted{Memory: mem}
					if tc.fail {
						on.fail = errors.New("it cannot be written")
					}
					m = mirror.New(&mirror.Options{Shard: tc.shard, On: on})
					require.NoError(t, mem.Zero(b))
					count[0] = 0
				}
				step, err = m.Restore(ctx, c, []int{1}, state...)
				if tc.fail {
					if rank == 1 {
						require.ErrorContains(t, err, "it cannot be written")
					} else if err == nil { // it has the state already, and hears of it later
						err = ccl.Barrier(ctx, c)
						require.ErrorIs(t, err, ccl.ErrAborted)
					}
					require.Error(t, err)
					return
				}
				require.NoError(t, err)
				require.Equal(t, 2, step)
				require.Equal(t, int64(20), count[0])
				got := make([]float32, n)
				require.NoError(t, mem.Get(bytesOf(got), b))
				require.Equal(t, at(2), got)
				require.Equal(t, tc.gets[rank], on.gets, "rank %d", rank)
				require.Equal(t, tc.puts[rank], on.puts, "rank %d", rank)
			}, ccltest.With(ccl.Options{Backend: "nccl", Log: slog.New(slog.DiscardHandler)}))
		})
	}
}

// A spare takes the place of a rank whose state was in the memory of a device, and goes on with it on its own. All calls of the Comm
// can be through NCCL.
func TestDeviceReplaced(t *testing.T) {
	gputest.Fake(t, "one device does not do for four ranks")
	const n, workers, steps = 1000, 3, 5
	for _, nth := range []int{15, 22, 30} {
		var ended, replaced atomic.Int32
		ccltest.Run(t, workers, func(t testing.TB, c *ccl.Comm) {
			defer func() { c.Close() }()
			ctx := t.Context()
			mem, b := memoryOf(t, c.Rank(), n)
			x, sum := make([]float32, n), []float32{0}
			m := mirror.New(&mirror.Options{On: mem})
			defer func() { m.Close() }()
			for {
				step, err := m.Restore(ctx, c, c.Fresh(), b)
				if err == nil {
					c.Restored()
					if step < 0 {
						require.NoError(t, mem.Zero(b))
					}
				}
				for step++; err == nil && step < steps; step++ {
					require.NoError(t, mem.Get(bytesOf(x), b))
					sum[0] = x[0] + float32(c.Rank())
					if err = ccl.AllReduce(ctx, c, sum, sum, ccl.Sum); err != nil {
						break
					}
					for i := range x {
						x[i] = sum[0] + float32(i+step)
					}
					require.NoError(t, mem.Put(b, bytesOf(x)))
					err = m.Save(ctx, step, b)
				}
				if err == nil {
					err = m.Wait(ctx)
				}
				if err == nil {
					break
				}
				next, failed := c.Replace(ctx)
				require.NoError(t, failed, "%v", err)
				require.Equal(t, []int{1}, next.Fresh())
				replaced.Add(1)
				c.Close()
				c = next
			}
			want := float32(0) // x[0] of all ranks
			for step := range steps {
				want = workers*want + workers*(workers-1)/2 + float32(step)
			}
			require.NoError(t, mem.Get(bytesOf(x), b))
			for i, v := range x {
				if v != want+float32(i) {
					require.Equal(t, want+float32(i), v, "rank %d, element %d", c.Rank(), i)
				}
			}
			ended.Add(1)
		}, ccltest.Spares(1), ccltest.Kill(1, nth), ccltest.With(ccl.Options{Backend: "nccl", Log: slog.New(slog.DiscardHandler)}))
		require.EqualValues(t, workers, ended.Load(), "before call %d", nth)
		require.EqualValues(t, workers-1, replaced.Load(), "before call %d", nth)
	}
}

// Memory of a device needs On, and all ranks hear which one lacks it.
func TestDeviceWithoutOn(t *testing.T) {
	gputest.Use(t)
	d, err := cuda.At(0)
	if err != nil && gputest.Real() {
		t.Skip("hardware: " + err.Error())
	}
	require.NoError(t, err)
	x, err := cuda.Alloc[float32](d, 8)
	require.NoError(t, err)
	defer x.Free()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		bufs := []ccl.Buf{ccl.BufOf([]float32{1, 2})}
		if c.Rank() == 1 {
			bufs = []ccl.Buf{ccl.BufOfMemory[float32](x)}
		}
		m := mirror.New(nil)
		defer m.Close()
		_, err := m.Restore(t.Context(), c, nil, bufs...)
		require.ErrorContains(t, err, "mirror: rank 1: a Buf is no view of host memory; Options.On copies that of a device")
	})
}
