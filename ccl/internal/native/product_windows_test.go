//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// page is as many elements as the 4,096 bytes at a multiple of which a window begins.
const page = 1024

// allotted is memory of MakeDevice with its windows: what TestProductWindowsAtRandom knows of it.
type allotted struct {
	m       ccl.Memory[int32]
	x       *gpu.Mem[int32]
	now     []int32 // what it holds
	windows []window
}

// window is pages from to to of a memory.
type window struct {
	from, to int
	release  func() error
}

func (a *allotted) covers(from, to int) bool {
	for _, w := range a.windows {
		if from < w.to && w.from < to {
			return true
		}
	}
	return false
}

// TestProductWindowsAtRandom makes, uses and releases windows at random, all ranks alike: calls on memory inside, outside and across
// windows are right, a second window of one memory and the end of memory with a window are refused on all ranks, and nothing stays.
func TestProductWindowsAtRandom(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		fake := fakeOf(t, name)
		for seed := range uint64(8) {
			for _, job := range jobs {
				t.Run(fmt.Sprint(job.name, " ", seed), func(t *testing.T) {
					before, broken := fake.Windows(), fake.Violations()
					ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
						begin(t, c, rt).windowsAtRandom(rand.New(rand.NewPCG(seed, 7)))
					}, append(job.opts, ccltest.With(ccl.Options{Backend: name}))...)
					require.Equal(t, before, fake.Windows())
					require.Equal(t, broken, fake.Violations())
				})
			}
		}
	})
}

func (r *on) windowsAtRandom(rnd *rand.Rand) {
	ctx, t := r.t.Context(), r.t
	const pages = 4
	var all []*allotted
	for range 40 {
		if len(all) == 0 || len(all) < 3 && rnd.IntN(6) == 0 {
			a := &allotted{now: make([]int32, pages*page)}
			a.m, a.x = r.make(len(a.now))
			for i := range a.now {
				a.now[i] = int32(i)
			}
			require.NoError(t, a.x.Put(a.now))
			all = append(all, a)
		}
		i := rnd.IntN(len(all))
		a, from := all[i], rnd.IntN(pages)
		to := from + 1 + rnd.IntN(pages-from)
		switch rnd.IntN(6) {
		case 0, 1:
			release, err := r.c.Window(ctx, ccl.BufOfMemory(a.m).From(from*page, to*page))
			if a.covers(from, to) {
				require.ErrorIs(t, err, ccl.ErrArgument)
				break
			}
			require.NoError(t, err)
			a.windows = append(a.windows, window{from, to, release})
		case 2, 3: // pages from to to, less some elements at each end
			low, high := from*page+rnd.IntN(3), to*page-rnd.IntN(3)
			got := r.ends(r.q.AllReduce(ccl.BufOfMemory(a.m).From(low, high), ccl.InPlace(), ccl.Sum), a.x)
			for i := low; i < high; i++ {
				a.now[i] *= int32(r.n)
			}
			require.Equal(t, a.now, got)
		case 4:
			if n := len(a.windows); n > 0 {
				k := rnd.IntN(n)
				require.NoError(t, a.windows[k].release())
				require.NoError(t, a.windows[k].release()) // twice does nothing
				a.windows = append(a.windows[:k], a.windows[k+1:]...)
				require.NoError(t, ccl.Barrier(ctx, r.c))
			}
		case 5:
			if err := ccl.FreeDevice(a.m); len(a.windows) > 0 {
				require.ErrorIs(t, err, ccl.ErrArgument)
				break
			} else {
				require.NoError(t, err)
			}
			all = append(all[:i], all[i+1:]...)
		}
	}
	require.NoError(t, ccl.Barrier(ctx, r.c))
	require.NoError(t, r.c.Close()) // releases what is left
	for _, a := range all {
		require.NoError(t, ccl.FreeDevice(a.m))
	}
}
