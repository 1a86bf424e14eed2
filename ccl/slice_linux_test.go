package ccl_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// sharedKiB is how much memory the ranks of this host share.
func sharedKiB(t testing.TB) int {
	t.Helper()
	h := holds(t)
	require.NotZero(t, h.kib, "there is no memfd")
	return h.kib
}

// mappings is how often this process has mapped that memory.
func mappings(t testing.TB) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return bytes.Count(maps, []byte("memfd:goccl"))
}

// worker works in part of a slice, as a program may beside calls on other parts, until it is stopped. What it has
// written stays.
func worker[T int64 | float32](part []T) (stop func() error) {
	var over atomic.Bool
	lost := make(chan error)
	go func() {
		for v := T(2); !over.Load(); v++ {
			for i := range part {
				part[i] = v
			}
			runtime.Gosched()
			for i := range part {
				if part[i] != v {
					lost <- fmt.Errorf("element %d was set to %v and is %v", i, v, part[i])
					return
				}
			}
			if v > 1<<20 {
				v = 2
			}
		}
		lost <- nil
	}()
	return func() error { over.Store(true); return <-lost }
}

// A call that fails on a part of a slice takes nothing but that part: not what the program does in another, no more time
// than it was given, and no memory.
func TestFailureOnPartOfASlice(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx, n := t.Context(), 8<<20 // 64 MiB
		before, shortest := 0, time.Hour
		for try := range 3 {
			c, err := world.Split(ctx, 0, world.Rank())
			require.NoError(t, err)
			arena, err := ccl.MakeSlice[int64](ctx, c, n)
			require.NoError(t, err)
			for i := range arena {
				arena[i] = 1
			}
			part := arena[4096-1 : 8192+1] // with pages at both ends that are others' too
			require.NoError(t, ccl.AllReduce(ctx, c, part, part, ccl.Sum))
			if world.Rank() == 0 {
				stops := []func() error{worker(arena[n/2 : n/2+4096]), worker(arena[4096-16 : 4096-1]), worker(arena[8192+1 : 8192+16])}
				limited, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				began := time.Now()
				err := ccl.AllReduce(limited, c, part, part, ccl.Sum)
				shortest = min(shortest, time.Since(began))
				cancel()
				require.ErrorIs(t, err, ccl.ErrTimeout)
				for _, stop := range stops {
					require.NoError(t, stop())
				}
				for i := range part {
					part[i] = 7
				}
				require.Equal(t, []int64{1, 7}, []int64{arena[n-1], arena[4096]})
			} else {
				<-c.Done()
			}
			require.NoError(t, c.Close())
			require.NoError(t, ccl.Barrier(ctx, world))
			ccl.FreeSlice(arena)
			require.NoError(t, ccl.Barrier(ctx, world))
			if try == 0 {
				before = sharedKiB(t)
			}
		}
		if world.Rank() == 0 {
			require.Less(t, shortest, time.Second, "of three, since other programs run here, too")
		}
		require.LessOrEqual(t, sharedKiB(t), before+1<<10, "memory is left behind")
	}, ccltest.Processes(2))
}

// Blocks are where they belong, whether the root's results are a whole slice, into which the others write, or a part of one,
// with pages at its ends that are others' too: there the root copies.
func TestGatherIntoASlice(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(3)}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			ctx, n := t.Context(), 150_000 // more than 1 MiB
			arena, err := ccl.MakeSlice[int64](ctx, c, 3*n+1000)
			require.NoError(t, err)
			defer ccl.FreeSlice(arena)
			for _, from := range []int{0, 1, 512, 999} {
				for _, counts := range [][]int{{n, n, n}, {2, n, n + 200}, {n + 11, 0, n}, {3, 5, 3 * n}} {
					for root := range 3 {
						total := counts[0] + counts[1] + counts[2]
						if from+total > len(arena) {
							continue
						}
						for i := range arena {
							arena[i] = -1
						}
						src := make([]int64, counts[c.Rank()])
						for i := range src {
							src[i] = int64(i + c.Rank())
						}
						var dst []int64
						if c.Rank() == root {
							dst = arena[from:][:total]
						}
						require.NoError(t, ccl.GatherV(ctx, c, dst, counts, src, root))
						if c.Rank() != root {
							continue
						}
						at := from
						for r, count := range counts {
							for i := range count {
								if arena[at+i] != int64(i+r) {
									t.Fatalf("from %d, %v to %d: element %d of rank %d is %d", from, counts, root, i, r, arena[at+i])
								}
							}
							at += count
						}
						for i, x := range arena {
							if (i < from || i >= at) && x != -1 {
								t.Fatalf("from %d, %v to %d: element %d of the slice, which is not of the results, is %d", from, counts, root, i, x)
							}
						}
					}
				}
			}
		}, opts...)
	}
}

// A Comm is not concerned if another fails in the same slice.
func TestFailureBesideAnotherComm(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx, n := t.Context(), 1<<20
		a, err := world.Split(ctx, 0, world.Rank())
		require.NoError(t, err)
		b, err := world.Split(ctx, 0, world.Rank())
		require.NoError(t, err)
		arena, err := ccl.MakeSlice[int64](ctx, world, n)
		require.NoError(t, err)
		first, second := arena[:4096+3], arena[4096+3:n-5]
		require.NoError(t, ccl.AllReduce(ctx, a, first, first, ccl.Sum))
		var step atomic.Int64
		failed := make(chan error, 1)
		go func() {
			failed <- func() error {
				for ; step.Load() < 100; step.Add(1) {
					v := step.Load()
					for i := range second {
						second[i] = v
					}
					if err := ccl.AllReduce(ctx, b, second, second, ccl.Sum); err != nil {
						return err
					}
					for i, x := range second {
						if x != 2*v {
							return fmt.Errorf("step %d: element %d is %d", v, i, x)
						}
					}
				}
				return nil
			}()
		}()
		for end := time.Now().Add(time.Minute); step.Load() < 20; time.Sleep(time.Millisecond) {
			require.True(t, time.Now().Before(end))
		}
		if world.Rank() == 0 {
			limited, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
			require.ErrorIs(t, ccl.AllReduce(limited, a, first, first, ccl.Sum), ccl.ErrTimeout)
			cancel()
		}
		require.NoError(t, <-failed)
		require.NoError(t, ccl.Barrier(ctx, world))
		a.Close()
		b.Close()
		ccl.FreeSlice(arena)
	}, ccltest.Processes(2))
}

// A slice that is refused leaves room for what is not too much.
func TestRefusedSliceLeavesRoom(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			for range 3 {
				_, err := ccl.MakeSlice[float32](ctx, c, 1<<39)
				require.ErrorIs(t, err, ccl.ErrBackend)
			}
			require.NoError(t, ccl.Barrier(ctx, c))
			s, err := ccl.MakeSlice[float32](ctx, c, 1000)
			require.NoError(t, err)
			d, err := c.Split(ctx, 0, 0)
			require.NoError(t, err)
			x := make([]float32, 1<<20)
			require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
			require.NoError(t, ccl.AllReduce(ctx, d, s, s, ccl.Sum))
			require.NoError(t, d.Close())
			ccl.FreeSlice(s)
		}, opts...)
	}
}

// Slices that come and go leave no mappings with the other ranks.
func TestFreedSlicesAreUnmapped(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		kept, err := ccl.MakeSlice[float32](ctx, c, 5000)
		require.NoError(t, err)
		most := 0
		for step := range 300 {
			n := 2000 + step*997%40_000
			s, err := ccl.MakeSlice[float32](ctx, c, n)
			require.NoError(t, err)
			d, err := ccl.MakeSlice[float32](ctx, c, n+c.Rank()*5000)
			require.NoError(t, err)
			for i := range s {
				if s[i] != 0 {
					t.Fatalf("step %d: element %d of a new slice is %v", step, i, s[i])
				}
				s[i] = float32(c.Rank() + step + i%7)
			}
			d = d[:n]
			require.NoError(t, ccl.AllReduce(ctx, c, d, s, ccl.Sum))
			for i := range d {
				if want := float32(3*step + 3 + i%7*3); d[i] != want {
					t.Fatalf("step %d: element %d is %v, not %v", step, i, d[i], want)
				}
			}
			require.NoError(t, ccl.AllReduce(ctx, c, kept, kept, ccl.Max))
			ccl.FreeSlice(s)
			ccl.FreeSlice(d)
			most = max(most, mappings(t))
		}
		require.Less(t, most, 100)
	}, ccltest.Processes(3))
}

// The edges of results that lie anywhere in slices are right, of any number of ranks, in place or not: few ranks each reduce
// all edges, five share that.
func TestResultsAnywhereInASlice(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5} {
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			const room = 40_000
			a, err := ccl.MakeSlice[float32](ctx, c, room)
			require.NoError(t, err)
			b, err := ccl.MakeSlice[float32](ctx, c, room)
			require.NoError(t, err)
			for step, size := range []int{1025, 1500, 2048, 2049, 3000, 5000, 20_000, 30_001} {
				for _, from := range [][2]int{{0, 0}, {1, 0}, {room - size, 0}, {1024, 1}, {700, 900}, {room - size, 5}} {
					for _, places := range []int{0, 1, n} { // ranks whose result is in place
						at, inPlace := from[c.Rank()%2], c.Rank() < places
						for i := range a {
							a[i], b[i] = -1, -2
						}
						src, dst := a[at:at+size], b[at:at+size]
						if inPlace {
							dst = src
						}
						for i := range src {
							src[i] = float32(i%11 + step + c.Rank())
						}
						require.NoError(t, ccl.AllReduce(ctx, c, dst, src, ccl.Sum))
						for i := range dst {
							if want := float32(n*(i%11+step) + n*(n-1)/2); dst[i] != want {
								t.Fatalf("%d elements at %d, in place %v: element %d is %v, not %v", size, at, inPlace, i, dst[i], want)
							}
						}
						for i := range b {
							if !inPlace && (i < at || i >= at+size) && b[i] != -2 || inPlace && (i < at || i >= at+size) && a[i] != -1 {
								t.Fatalf("%d elements at %d, in place %v: element %d beside them is %v, %v", size, at, inPlace, i, a[i], b[i])
							}
						}
					}
				}
			}
			ccl.FreeSlice(a)
			ccl.FreeSlice(b)
		}, ccltest.Processes(n))
	}
}

// What a Comm has made for its pipes is given back when it is closed, and nothing beside it.
func TestCloseFreesItsOwnMemoryOnly(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		ctx, page := t.Context(), os.Getpagesize()
		small, err := ccl.MakeSlice[uint8](ctx, world, page)
		require.NoError(t, err)
		kept, err := ccl.MakeSlice[uint8](ctx, world, 64*page)
		require.NoError(t, err)
		for i := range kept {
			kept[i] = 5
		}
		c, err := world.Split(ctx, 0, 0)
		require.NoError(t, err)
		ccl.FreeSlice(small) // a page, before what is kept: where the places of pipes go
		require.NoError(t, ccl.Barrier(ctx, world))
		x := []uint8{1, 2}
		require.NoError(t, ccl.SendRecv(ctx, c, x[:1], 1-c.Rank(), x[1:], 1-c.Rank()))
		require.NoError(t, c.Close())
		require.NoError(t, ccl.Barrier(ctx, world))
		require.Equal(t, bytes.Repeat([]byte{5}, len(kept)), kept)
		ccl.FreeSlice(kept)
	}, ccltest.Processes(2))
}
