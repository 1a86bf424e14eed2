package ccl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// letter is what rank from sends in a step, of that many elements.
func letter(step, from, n int) []uint32 {
	b := make([]uint32, n)
	for i := range b {
		b[i] = uint32(step*1_000_003 + from*70_001 + i)
	}
	return b
}

// Blocking calls and groups, of messages of all sizes, follow each other on one link, whatever the one end or the other
// makes of them.
func TestPairsInAnyOrder(t *testing.T) {
	lengths := []int{0, 1, 3, 4, 5, 15, 100, 250, 256, 700, 1024, 2000, 2049, 4096, 9000, 50_000}
	steps := 150
	if raceDetector {
		steps = 25
	} else if testing.Short() {
		steps = 50
	}
	for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict, ccl.CheckOff} {
		t.Run(fmt.Sprint(check), func(t *testing.T) {
			for _, n := range []int{1, 2, 3} {
				inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
					for step := range steps {
						pairsStep(t, c, rand.New(rand.NewPCG(uint64(step), uint64(n))), step, lengths)
					}
				}, ccltest.With(ccl.Options{Check: check}), ccltest.Deadline(3*time.Minute))
			}
		})
	}
}

// pairsStep makes one step of what random, the same on all ranks, says.
func pairsStep(t testing.TB, c *ccl.Comm, random *rand.Rand, step int, lengths []int) {
	ctx, q, n, me := context.Background(), c.On(nil), c.Size(), c.Rank()
	send := func(grouped bool, src []uint32, to int) error {
		if !grouped {
			return ccl.Send(ctx, c, src, to)
		}
		return q.Group(func(g ccl.Queue) error { g.Send(ccl.BufOf(src), to); return nil }).Wait(ctx)
	}
	recv := func(grouped bool, dst []uint32, from int) error {
		if !grouped {
			return ccl.Recv(ctx, c, dst, from)
		}
		return q.Group(func(g ccl.Queue) error { g.Recv(ccl.BufOf(dst), from); return nil }).Wait(ctx)
	}
	kind := random.IntN(4)
	if n == 1 {
		kind = min(kind, 2) // a Send to itself need not return before the Recv
	}
	lens := make([]int, n)
	for r := range lens {
		lens[r] = lengths[random.IntN(len(lengths))]
	}
	shift := random.IntN(n)
	to, from := (me+shift)%n, (me+n-shift)%n
	src, want := letter(step, me, lens[me]), letter(step, from, lens[from])
	switch kind {
	case 0, 1: // a ring, in place and not
		dst := make([]uint32, len(want))
		if kind == 1 {
			both := make([]uint32, max(len(src), len(want)))
			copy(both, src)
			src, dst = both[:len(src)], both[:len(want)]
		}
		require.NoError(t, ccl.SendRecv(ctx, c, dst, from, src, to), "step %d", step)
		require.Equal(t, want, dst, "step %d", step)
	case 2: // the same of which some ranks make groups
		dst := make([]uint32, len(want))
		if random.IntN(1<<n)>>me&1 == 0 {
			require.NoError(t, ccl.SendRecv(ctx, c, dst, from, src, to), "step %d", step)
		} else {
			require.NoError(t, q.Group(func(g ccl.Queue) error {
				g.Send(ccl.BufOf(src), to)
				g.Recv(ccl.BufOf(dst), from)
				return nil
			}).Wait(ctx), "step %d", step)
		}
		require.Equal(t, want, dst, "step %d", step)
	case 3: // many one way
		a := random.IntN(n)
		b := (a + 1 + random.IntN(n-1)) % n
		groups := random.IntN(4)
		for i := range 1 + random.IntN(100) {
			k := lengths[random.IntN(len(lengths))] >> random.IntN(8)
			switch me {
			case a:
				require.NoError(t, send(groups&1 != 0, letter(step+i, a, k), b), "step %d", step)
			case b:
				dst := make([]uint32, k)
				require.NoError(t, recv(groups&2 != 0, dst, a), "step %d", step)
				require.Equal(t, letter(step+i, a, k), dst, "step %d", step)
			}
		}
	}
}

// Without checks a message of another length is still not taken for the one that is waited for.
func TestPairsLengthWithoutChecks(t *testing.T) {
	for _, lens := range [][2]int{{0, 1}, {1, 0}, {2, 3}, {3, 2}, {100, 5000}, {5000, 100}, {9000, 9001}} {
		t.Run(fmt.Sprint(lens), func(t *testing.T) {
			o := &ccl.Options{Check: ccl.CheckOff, Timeout: 5 * time.Second}
			world(t, 2, nil, func(int) *ccl.Options { return o }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				if c.Rank() == 0 {
					if err := ccl.Send(ctx, c, make([]int32, lens[0]), 1); err == nil {
						wants(t, ccl.Barrier(ctx, c), ccl.ErrMismatch)
					}
					return
				}
				e := wants(t, ccl.Recv(ctx, c, make([]int32, lens[1]), 0), ccl.ErrMismatch)
				assert.Equal(t, 0, e.Peer)
			})
		})
	}
}

// Two SendRecv that do not fit: each rank is told of the other's call.
func TestMismatchOfSendRecv(t *testing.T) {
	for _, sizes := range [][2]int{{3, 4}, {300, 301}, {30_000, 30_001}, {0, 1}} {
		for _, swap := range []bool{false, true} {
			a, b := sizes[0], sizes[1]
			if swap {
				a, b = b, a
			}
			t.Run(fmt.Sprint(a, b), func(t *testing.T) {
				o := &ccl.Options{Timeout: 5 * time.Second}
				everywhere(t, 2, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
					// Rank 0 sends a, rank 1 expects b.
					other := 1 - c.Rank()
					k := a
					if c.Rank() == 1 {
						k = b
					}
					err := ccl.SendRecv(ctx, c, make([]int32, k), other, make([]int32, k), other)
					e := wants(t, err, ccl.ErrMismatch)
					assert.Equal(t, other, e.Peer)
					if assert.NotNil(t, e.Theirs) {
						assert.Equal(t, ccl.KindSendRecv, e.Theirs.Kind)
						assert.EqualValues(t, a+b-k, e.Theirs.Count)
					}
				})
			})
		}
	}
}
