package data_test

import (
	"context"
	"fmt"
	"maps"
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

// epoch is what s yields.
func epoch(t testing.TB, s data.Sampler, e, consumed int) (items []int, after int) {
	all, err := s.Epoch(e, consumed)
	require.NoError(t, err)
	after = consumed
	for at, x := range all {
		require.Equal(t, after+max(s.Size, 1), at)
		items, after = append(items, x), at
	}
	return items, after
}

func TestSamplerUnique(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 64, 65, 97, 256, 257, 1000, 4096, 4097, 4099} {
		for _, size := range []int{1, 2, 3, 7} {
			for _, pad := range []bool{false, true} {
				if n < size && !pad {
					continue
				}
				want := n / size * size
				if pad {
					want = (n + size - 1) / size * size
				}
				for e := range 3 {
					count := make([]int, n)
					total := 0
					for _, s := range samplers(n, size, pad) {
						items, after := epoch(t, s, e, 0)
						for _, x := range items {
							count[x]++
						}
						require.Len(t, items, s.Len())
						require.Equal(t, want, after)
						total += len(items)
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

func TestSamplerResumesAnywhere(t *testing.T) {
	s := data.Sampler{N: 1003, Rank: 1, Size: 2, Seed: 1}
	all, _ := epoch(t, s, 3, 0)
	for from := range len(all) {
		rest, _ := epoch(t, s, 3, 2*from)
		require.Equal(t, all[from:], rest)
	}
	for _, consumed := range []int{1002, 1003, 2000} {
		none, _ := epoch(t, s, 3, consumed)
		require.Empty(t, none)
	}
	items, _ := epoch(t, data.Sampler{N: 1003, Rank: 1, Size: 2, Seed: 2}, 3, 0)
	require.NotEqual(t, all, items)
	items, _ = epoch(t, s, 4, 0)
	require.NotEqual(t, all, items)
	// Leaving the loop leaves it.
	loop, err := s.Epoch(0, 0)
	require.NoError(t, err)
	for at := range loop {
		if at == 6 {
			break
		}
		require.Less(t, at, 6)
	}
	// 2^40 items and no list, and as many as there can be.
	for _, n := range []int{1 << 40, math.MaxInt} {
		s = data.Sampler{N: n, Rank: 5, Size: 8, Seed: 1}
		items, after := epoch(t, s, 0, 8*(s.Len()-2))
		require.Len(t, items, 2)
		require.Equal(t, 8*s.Len(), after)
	}
}

// A run that goes on with another number of ranks, as often as it likes, goes through what is left: of all items each comes
// once, but for the last ones, fewer than there are ranks then.
func TestSamplerResumesOnOtherRanks(t *testing.T) {
	for _, n := range []int{7, 100, 1000, 4097} {
		for _, sizes := range [][]int{{4, 3}, {2, 3}, {4, 2}, {1, 7, 2, 5}, {8, 1}, {3, 4, 3, 4, 3}} {
			for _, pad := range []bool{false, true} {
				count := make([]int, n)
				consumed := 0
				for part, size := range sizes {
					last := part == len(sizes)-1
					turns := n / size / len(sizes) // and then it stops
					next := consumed
					for _, s := range samplers(n, size, pad) {
						all, err := s.Epoch(2, consumed)
						if size > n && !pad {
							require.Error(t, err)
							continue
						}
						require.NoError(t, err)
						next = consumed
						for at, x := range all {
							if !last && at > consumed+turns*size {
								break
							}
							count[x]++
							next = at
						}
					}
					consumed = next
				}
				once, none := 0, 0
				for _, k := range count {
					if k > 0 {
						once++
					} else {
						none++
					}
				}
				size := sizes[len(sizes)-1]
				if pad {
					require.Zero(t, none, "%d items, ranks %d", n, sizes)
				} else if size <= n {
					require.Less(t, none, size, "%d items, ranks %d", n, sizes)
					require.Equal(t, consumed, once, "%d items, ranks %d: none comes twice", n, sizes)
				}
			}
		}
	}
}

// Items that follow each other in the epoch are as far apart as random ones, and each item comes early as often as late.
func TestSamplerIsRandom(t *testing.T) {
	for _, n := range []int{1000, 1025} {
		const epochs = 300
		sum := make([]float64, n) // of each item's positions
		steps := 0.
		for e := range epochs {
			items, _ := epoch(t, data.Sampler{N: n, Size: 1, Seed: 9}, e, 0)
			for at, x := range items {
				sum[x] += float64(at)
				if at > 0 {
					steps += math.Abs(float64(x - items[at-1]))
				}
			}
		}
		// Positions are uniform: mean (n-1)/2, deviation of the mean of 300 of them n/sqrt(12*300).
		for x := range sum {
			require.InDelta(t, float64(n-1)/2, sum[x]/epochs, 6*float64(n)/60, x)
		}
		// The mean distance of two random items is n/3.
		require.InDelta(t, float64(n)/3, steps/float64(n-1)/epochs, 3)
	}
}

// Of few items all permutations are as frequent, and of more every item is at every place: Pearson's sum, whose mean is the
// number of cells less one, and its variance twice that.
func TestSamplerIsUniform(t *testing.T) {
	even := func(counts []float64, want float64, what string) {
		chi := 0.
		for _, n := range counts {
			chi += (n - want) * (n - want) / want
		}
		k := float64(len(counts) - 1)
		require.InDelta(t, k, chi, 6*math.Sqrt(2*k), what)
	}
	for n := 2; n <= 5; n++ {
		const epochs = 20_000
		seen := map[string]float64{}
		for e := range epochs {
			items, _ := epoch(t, data.Sampler{N: n, Seed: 3}, e, 0)
			seen[fmt.Sprint(items)]++
		}
		counts := slices.Collect(maps.Values(seen))
		all := 1
		for i := range n {
			all *= i + 1
		}
		require.Len(t, counts, all)
		even(counts, float64(epochs)/float64(all), fmt.Sprintf("permutations of %d", n))
	}
	for _, n := range []int{6, 7, 8, 9, 10, 16, 17, 64, 257, 300} {
		epochs := 1_000_000 / n / n
		at := make([][]float64, n)
		for i := range at {
			at[i] = make([]float64, n)
		}
		for e := range epochs {
			items, _ := epoch(t, data.Sampler{N: n, Seed: 4}, e, 0)
			for i, x := range items {
				at[x][i]++
			}
		}
		even(slices.Concat(at...), float64(epochs)/float64(n), fmt.Sprintf("places of %d", n))
	}
}

// The cipher seldom has to be repeated, whatever the number of items: 4^k+1 take no longer than 4^k.
func TestSamplerRepeatsSeldom(t *testing.T) {
	for _, n := range []int{257, 1025, 4096, 4097, 16385, 65537, 65536, 1<<20 + 1} {
		require.Less(t, data.Repeats(n, 10_000), 1.1, n)
	}
}

func TestSamplerCheck(t *testing.T) {
	for _, tc := range []struct {
		s    data.Sampler
		want string
	}{
		{data.Sampler{N: 5, Size: 2}, ""},
		{data.Sampler{N: 5}, ""},
		{data.Sampler{N: -5, Size: 2}, "data: a Sampler of -5 items"},
		{data.Sampler{N: 5, Size: -1}, "data: a Sampler for -1 ranks"},
		{data.Sampler{N: 5, Rank: 2, Size: 2}, "data: a Sampler for rank 2 of 2"},
		{data.Sampler{N: 5, Rank: 1}, "data: a Sampler for rank 1 of 1"},
		{data.Sampler{N: 5, Size: 6}, "data: 5 items do not give each of 6 ranks one; set Pad, or use fewer ranks"},
		{data.Sampler{N: 5, Size: 6, Pad: true}, ""},
		{data.Sampler{Size: 1, Pad: true}, "data: 0 items do not give each of 1 ranks one; set Pad, or use fewer ranks"},
	} {
		_, err := tc.s.Epoch(0, 0)
		if tc.want == "" {
			require.NoError(t, tc.s.Check())
			require.NoError(t, err)
		} else {
			require.EqualError(t, tc.s.Check(), tc.want)
			require.EqualError(t, err, tc.want)
		}
	}
	_, err := data.Sampler{N: 5}.Epoch(0, -1)
	require.EqualError(t, err, "data: an epoch of which -1 items are consumed")
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
		ccltest.Barrier(t, c) // the Comm is fine
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
		ccltest.Barrier(t, c)
	})
}
