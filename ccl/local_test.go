package ccl_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// What is each rank's own affair may differ on any one rank: where its memory comes
// from, how it is aligned, whether the call is in place. The way a call goes must not
// depend on it, since the others do not know.

// property is a way to make the memory of a rank's call.
type property struct {
	name    string
	inPlace bool
	make    func(t testing.TB, c *ccl.Comm, n int) []float64
}

func plain(_ testing.TB, _ *ccl.Comm, n int) []float64 { return make([]float64, n) }

var properties = []property{
	{"in place", true, plain},
	{"MakeSlice", false, makeSlice},
	{"MakeSlice in place", true, makeSlice},
	{"off by an element", false, func(_ testing.TB, _ *ccl.Comm, n int) []float64 { return make([]float64, n+1)[1:] }},
	{"part of a larger slice", true, func(_ testing.TB, _ *ccl.Comm, n int) []float64 { return make([]float64, 3*n+13)[n+5:][:n] }},
	{"exact capacity", true, func(_ testing.TB, _ *ccl.Comm, n int) []float64 { return make([]float64, n)[:n:n] }},
}

// makeSlice has all ranks take part, as MakeSlice asks for.
func makeSlice(t testing.TB, c *ccl.Comm, n int) []float64 {
	s, err := ccl.MakeSlice[float64](t.Context(), c, n)
	require.NoError(t, err)
	t.Cleanup(func() { ccl.FreeSlice(s) })
	return s
}

// localKinds are those that can be in place on one rank and not on another.
var localKinds = []ccl.Kind{
	ccl.KindAllReduce, ccl.KindReduce, ccl.KindReduceScatter, ccl.KindReduceScatterV, ccl.KindBroadcast, ccl.KindAllGather,
	ccl.KindAllGatherV, ccl.KindGather, ccl.KindGatherV, ccl.KindScatter, ccl.KindScatterV, ccl.KindAllToAll, ccl.KindSendRecv,
}

func TestLocal(t *testing.T) {
	const n = 3
	inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
		number := uint64(0)
		for _, p := range properties {
			for _, count := range []int{1, 100, 20_000, 300_000} {
				for _, kind := range localKinds {
					number++
					if testing.Short() && count > 1000 && (raceDetector || mix(number)%16 != 0) {
						continue
					}
					odd := int(number % n) // differs from the others
					s := shape{kind: kind, op: ccl.Sum, root: int(mix(number) % n), count: count, number: number}
					s.uneven(n)
					require.NoError(t, p.play(t, c, s, c.Rank() == odd), "%s on rank %d only", p.name, odd)
				}
			}
		}
	}, ccltest.Deadline(2*time.Minute))
}

// play is typed.play, with memory of the property if this rank is the odd one. All
// ranks call make, and all but that one drop what it gave.
func (p property) play(t testing.TB, c *ccl.Comm, s shape, odd bool) error {
	s.inPlace = odd && p.inPlace && s.canBeInPlace()
	return playIn(t.Context(), c, s, func(n int) []float64 {
		if own := p.make(t, c, max(n, 1)); odd {
			return own[:n]
		}
		return nil
	})
}

// playIn is typed.play, in memory that is made for it, unless that is nil.
func playIn(ctx context.Context, c *ccl.Comm, s shape, make func(n int) []float64) error {
	same := func(x float64) float64 { return x }
	m := float(53, -1074, 0, same, same).memory(&s, c.Size(), c.Rank())
	if own := make(len(m.all)); own != nil {
		copy(own, m.all)
		dst, src := offsetIn(m.all, m.dst), offsetIn(m.all, m.src)
		m.dst, m.src = own[dst:][:len(m.dst)], own[src:][:len(m.src)]
		m.all = own
	}
	if err := perform(ctx, c, &s, m.dst, m.src); err != nil {
		return fmt.Errorf("%v: %w", s, err)
	}
	if err := m.check(); err != nil {
		return fmt.Errorf("%v on %v: %w", s, c, err)
	}
	return nil
}

// A slice of a stack moves when the stack grows: before the call, while another
// goroutine of this rank waits in one, and after.
func TestLocalStack(t *testing.T) {
	inWorlds(t, 3, func(t testing.TB, c *ccl.Comm) {
		for round := range 20 {
			for _, odd := range []int{0, 1, 2, -1} { // -1: all
				if c.Rank() != odd && odd >= 0 {
					dst, src := make([]int32, stackLen), make([]int32, stackLen)
					fillStack(src, c.Rank(), round)
					require.NoError(t, ccl.AllReduce(t.Context(), c, dst, src, ccl.Sum))
					requireStack(t, dst, c.Size(), round)
					continue
				}
				failed := make(chan error)
				go func() { failed <- onStack(c, round) }() // a stack that is small at first
				require.NoError(t, <-failed)
			}
		}
	})
}

// TestLocalStackQueue: what waits in a queue keeps its memory, wherever it was.
func TestLocalStackQueue(t *testing.T) {
	inWorlds(t, 2, func(t testing.TB, c *ccl.Comm) {
		for round := range 20 {
			failed := make(chan error)
			go func() {
				var src, dst [stackLen]int32
				fillStack(src[:], c.Rank(), round)
				w := c.On(nil).AllReduce(ccl.BufOf(dst[:]), ccl.BufOf(src[:]), ccl.Sum)
				deep(64)
				if err := w.Wait(context.Background()); err != nil {
					failed <- err
					return
				}
				failed <- checkStack(dst[:], c.Size(), round)
			}()
			require.NoError(t, <-failed)
		}
	})
}

const stackLen = 1000 // more than lies beside a flag

func fillStack(s []int32, rank, round int) {
	for i := range s {
		s[i] = int32((rank + 1) * (i + round))
	}
}

func checkStack(s []int32, n, round int) error {
	for i, got := range s {
		if want := int32(n * (n + 1) / 2 * (i + round)); got != want {
			return fmt.Errorf("element %d is %d, not %d, in round %d", i, got, want, round)
		}
	}
	return nil
}

func requireStack(t testing.TB, s []int32, n, round int) {
	t.Helper()
	require.NoError(t, checkStack(s, n, round))
}

// onStack makes calls on local arrays with the stack growing in between.
func onStack(c *ccl.Comm, round int) error {
	var src, dst [stackLen]int32
	fillStack(src[:], c.Rank(), round)
	deep(round)
	if err := ccl.AllReduce(context.Background(), c, dst[:], src[:], ccl.Sum); err != nil {
		return err
	}
	deep(10 * round)
	return checkStack(dst[:], c.Size(), round)
}

// deep makes the stack grow by some n KiB.
//
//go:noinline
func deep(n int) byte {
	var frame [1024]byte
	if n == 0 {
		return frame[0]
	}
	frame[n%1024] = deep(n - 1)
	return frame[n%1024]
}
