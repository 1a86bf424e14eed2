package data_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
)

func TestRange(t *testing.T) {
	for n := range 40 {
		for size := 1; size < 12; size++ {
			end := 0
			for r := range size {
				lo, hi := data.Range(n, r, size)
				require.Equal(t, end, lo)
				require.Contains(t, []int{n / size, (n + size - 1) / size}, hi-lo)
				end = hi
			}
			require.Equal(t, n, end)
		}
	}
	for _, bad := range [][3]int{{-1, 0, 1}, {5, -1, 2}, {5, 2, 2}, {5, 0, 0}, {5, 0, -1}} {
		lo, hi := data.Range(bad[0], bad[1], bad[2])
		require.Zero(t, [2]int{lo, hi}, bad)
	}
	lo, hi := data.Range(math.MaxInt, 999, 1000)
	require.Equal(t, math.MaxInt, hi)
	require.Equal(t, math.MaxInt/1000, hi-lo)
}

func TestSeed(t *testing.T) {
	seen := map[uint64]bool{}
	for base := range uint64(3) {
		for rank := range 200 {
			for use := range 50 {
				seen[data.Seed(base, rank, use)] = true
			}
		}
	}
	for rank := range 20 {
		seen[data.Seed(0, math.MaxUint32-rank, math.MaxUint32)] = true
	}
	require.Len(t, seen, 3*200*50+20)
	require.Equal(t, data.Seed(7, 3, 1), data.Seed(7, 3, 1))
}

// samplers of all ranks.
func samplers(n, size int, pad bool) (all []data.Sampler) {
	for r := range size {
		all = append(all, data.Sampler{N: n, Rank: r, Size: size, Seed: 7, Pad: pad})
	}
	return all
}

func TestSamplerUnique(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 64, 65, 97, 1000, 4099} {
		for _, size := range []int{1, 2, 3, 7} {
			for _, pad := range []bool{false, true} {
				want := n / size * size
				if pad {
					want = (n + size - 1) / size * size
				}
				for e := range 3 {
					count := make([]int, n)
					total := 0
					for _, s := range samplers(n, size, pad) {
						length := 0
						for at, x := range s.Epoch(e, 0) {
							require.Equal(t, length, at)
							count[x]++
							length++
						}
						require.Equal(t, s.Len(), length)
						total += length
					}
					require.Equal(t, want, total)
					if pad && n >= size {
						require.NotContains(t, count, 0)
						require.LessOrEqual(t, slices.Max(count), 2)
					} else if !pad {
						require.LessOrEqual(t, slices.Max(count), 1)
					}
				}
			}
		}
	}
}

func collect(s data.Sampler, e, from int) (items []int) {
	for _, x := range s.Epoch(e, from) {
		items = append(items, x)
	}
	return items
}

func TestSamplerResumesAnywhere(t *testing.T) {
	s := data.Sampler{N: 1003, Rank: 1, Size: 2, Seed: 1}
	all := collect(s, 3, 0)
	for from := range len(all) {
		require.Equal(t, all[from:], collect(s, 3, from))
	}
	require.Empty(t, collect(s, 3, len(all)))
	require.Equal(t, all, collect(s, 3, -5))
	require.NotEqual(t, all, collect(s, 4, 0))
	s.Seed = 2
	require.NotEqual(t, all, collect(s, 3, 0))
	// Leaving the loop leaves it.
	for at := range s.Epoch(0, 0) {
		if at == 3 {
			break
		}
		require.Less(t, at, 3)
	}
	// 2^40 items and no list.
	s = data.Sampler{N: 1 << 40, Rank: 5, Size: 8, Seed: 1}
	for at, x := range s.Epoch(0, s.Len()-2) {
		require.GreaterOrEqual(t, at, s.Len()-2)
		require.Less(t, x, 1<<40)
	}
}

// Items that follow each other in the epoch are as far apart as random ones, and each item comes early as often as late.
func TestSamplerIsRandom(t *testing.T) {
	const n, epochs = 1000, 300
	sum := make([]float64, n) // of each item's positions
	steps := 0.
	for e := range epochs {
		last := 0
		for at, x := range (data.Sampler{N: n, Size: 1, Seed: 9}).Epoch(e, 0) {
			sum[x] += float64(at)
			if at > 0 {
				steps += math.Abs(float64(x - last))
			}
			last = x
		}
	}
	// Positions are uniform: mean 499.5, deviation of the mean of 300 of them 16.7.
	for x := range sum {
		require.InDelta(t, 499.5, sum[x]/epochs, 6*16.7, x)
	}
	// The mean distance of two random items is n/3.
	require.InDelta(t, n/3., steps/(n-1)/epochs, 3)
}

func TestSamplerCheck(t *testing.T) {
	for _, tc := range []struct {
		s    data.Sampler
		want string
	}{
		{data.Sampler{N: 5, Size: 2}, ""},
		{data.Sampler{N: -5, Size: 2}, "data: a Sampler of -5 items"},
		{data.Sampler{N: 5}, "data: a Sampler for 0 ranks"},
		{data.Sampler{N: 5, Rank: 2, Size: 2}, "data: a Sampler for rank 2 of 2"},
		{data.Sampler{N: 5, Size: 6}, "data: 5 items do not give each of 6 ranks one; set Pad, or use fewer ranks"},
		{data.Sampler{N: 5, Size: 6, Pad: true}, ""},
		{data.Sampler{Size: 1, Pad: true}, "data: 0 items do not give each of 1 ranks one; set Pad, or use fewer ranks"},
	} {
		if err := tc.s.Check(); tc.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, tc.want)
			require.Empty(t, collect(tc.s, 0, 0))
		}
	}
}

func TestOnRoot(t *testing.T) {
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Hosts(2)}} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			for _, n := range []int{0, 1, 1000, 100_003} {
				calls := 0
				got, err := data.OnRoot(t.Context(), c, 1, func() ([]int32, error) {
					calls++
					x := make([]int32, n)
					for i := range x {
						x[i] = int32(i * i)
					}
					return x, nil
				})
				require.NoError(t, err)
				require.Len(t, got, n)
				for i, x := range got {
					require.Equal(t, int32(i*i), x)
				}
				require.Equal(t, c.Rank() == 1, calls == 1)
			}
		}, opts...)
	}
}

// badReads are functions that fail, and what is said of them.
var badReads = []struct {
	name string
	f    func() ([]byte, error)
	want string
}{
	{"an error", func() ([]byte, error) { return []byte("x"), os.ErrPermission }, "permission denied"},
	{"a panic", func() ([]byte, error) { panic("no data") }, "panic: no data"},
}

func TestOnRootFails(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		for _, tc := range badReads {
			_, err := data.OnRoot(t.Context(), c, 2, tc.f)
			require.EqualError(t, err, "data: OnRoot: rank 2: "+tc.want)
		}
		_, err := data.OnRoot(t.Context(), c, 2, badReads[0].f)
		require.ErrorIs(t, err, os.ErrPermission, "on all ranks")
		_, err = data.OnRoot(t.Context(), c, 3, badReads[0].f)
		require.EqualError(t, err, "data: OnRoot: root 3 of 3 ranks")
		_, err = data.OnRoot(t.Context(), c, c.Rank()/2, badReads[0].f)
		require.EqualError(t, err, "data: ranks differ: rank 0 has OnRoot of uint8 with root 0, rank 2 has OnRoot of uint8 with root 1")
		require.NoError(t, ccl.Barrier(t.Context(), c)) // the Comm is fine
	})
}

func TestFunctionThatEndsItsGoroutine(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		end := func() ([]byte, error) { runtime.Goexit(); return nil, nil }
		done := make(chan error, 1)
		go func() {
			var err error
			defer func() { done <- err }()
			_, err = data.OnRoot(context.Background(), c, 0, end)
		}()
		err := <-done
		if c.Rank() == 1 {
			require.ErrorIs(t, err, ccl.ErrAborted)
		}
	}, ccltest.With(ccl.Options{Timeout: time.Minute}))
}

func TestReaders(t *testing.T) {
	for _, tc := range []struct {
		n, k int
		opts []ccltest.Option
	}{{1, 1, nil}, {1, 4, nil}, {4, 1, nil}, {5, 2, nil}, {5, 3, []ccltest.Option{ccltest.Hosts(2)}}, {4, 9, []ccltest.Option{ccltest.Processes(2)}}} {
		ccltest.Run(t, tc.n, func(t testing.TB, c *ccl.Comm) {
			var read []int
			got, err := data.Readers(t.Context(), c, tc.k, func(rank int) ([]float64, error) {
				read = append(read, rank)
				x := make([]float64, 1000*rank) // rank 0 needs nothing
				for i := range x {
					x[i] = float64(rank) + float64(i)/1000
				}
				return x, nil
			})
			require.NoError(t, err)
			require.Len(t, got, 1000*c.Rank())
			for i, x := range got {
				require.Equal(t, float64(c.Rank())+float64(i)/1000, x)
			}
			if c.Rank()%tc.k == 0 {
				require.Len(t, read, min(tc.k, c.Size()-c.Rank()))
			} else {
				require.Empty(t, read)
			}
		}, tc.opts...)
	}
}

func TestReadersFail(t *testing.T) {
	ccltest.Run(t, 6, func(t testing.TB, c *ccl.Comm) {
		for bad := range 6 {
			for _, tc := range badReads {
				_, err := data.Readers(t.Context(), c, 3, func(rank int) ([]byte, error) {
					if rank == bad {
						return tc.f()
					}
					return make([]byte, 10), nil
				})
				require.EqualError(t, err, fmt.Sprintf("data: Readers: rank %d: the part of rank %d: %s", bad/3*3, bad, tc.want))
			}
		}
		_, err := data.Readers(t.Context(), c, 0, func(int) ([]byte, error) { return nil, nil })
		require.EqualError(t, err, "data: Readers: one rank in 0 reads")
		require.NoError(t, ccl.Barrier(t.Context(), c))
	})
}
