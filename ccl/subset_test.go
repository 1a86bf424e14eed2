package ccl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// subsets makes Comms of some ranks, in turn, while the others do what they like.
func subsets(ctx context.Context, t testing.TB, c *ccl.Comm) {
	for tag, ranks := range [][]int{{0, 1, 2, 3, 4}, {3, 1}, {2}, {4, 0, 2}, {3, 1}} {
		at := slices.Index(ranks, c.Rank())
		if at < 0 {
			continue
		}
		sub, err := ccl.Subset(ctx, c, ranks, tag)
		require.NoError(t, err)
		require.Equal(t, at, sub.Rank())
		require.Equal(t, len(ranks), sub.Size())
		x := []int{c.Rank()}
		require.NoError(t, ccl.AllReduce(ctx, sub, x, x, ccl.Sum))
		sum := 0
		for _, r := range ranks {
			sum += r
		}
		require.Equal(t, []int{sum}, x)
		part, err := sub.Split(ctx, at%2, 0)
		require.NoError(t, err)
		require.NoError(t, ccl.Barrier(ctx, part))
		require.NoError(t, part.Close())
		exchangeLinks(ctx, t, sub)
		require.NoError(t, sub.Close())
	}
}

func TestSubset(t *testing.T) {
	everywhere(t, 5, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		subsets(ctx, t, c)
		works(ctx, t, c)
	})
}

func TestSubsetOfProcesses(t *testing.T) {
	for name, opts := range map[string][]ccltest.Option{
		"one host":  {ccltest.Processes(3)},
		"two hosts": {ccltest.Processes(5), ccltest.Hosts(2)},
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 5, func(t testing.TB, c *ccl.Comm) { subsets(t.Context(), t, c) }, opts...)
		})
	}
}

// The ranks that are not in the list are in a call of c meanwhile, which the others make later.
func TestSubsetBesideCalls(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() < 2 {
			works(ctx, t, c)
			return
		}
		x := []int{1, c.Rank()}
		sub, err := ccl.Subset(ctx, c, []int{2, 3}, 0)
		require.NoError(t, err)
		works(ctx, t, sub)
		require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
		assert.Equal(t, []int{4, 6}, x)
		assert.NoError(t, sub.Close())
	})
}

// Who has not come is named, on all that have, in bounded time; and another attempt is another one.
func TestSubsetWithoutSome(t *testing.T) {
	inTime(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		all := []int{3, 2, 1, 0}
		for _, missing := range []int{1, 0} {
			if c.Rank() != missing {
				short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
				_, err := ccl.Subset(short, c, all, 0)
				cancel()
				e := wants(t, err, ccl.ErrTimeout)
				assert.Equal(t, []int{missing}, e.Missing, "rank %d", c.Rank())
				assert.Equal(t, "Subset", e.Op)
			}
			meet(ctx)
			sub, err := ccl.Subset(ctx, c, all, 0)
			require.NoError(t, err)
			works(ctx, t, sub)
			assert.NoError(t, sub.Close())
			meet(ctx)
		}
	})
}

// A rank with another list is named.
func TestSubsetMismatch(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		ranks := []int{0, 1, 2}
		if c.Rank() == 2 {
			ranks = []int{0, 2, 1}
		}
		_, err := ccl.Subset(ctx, c, ranks, 3)
		e := wants(t, err, ccl.ErrMismatch)
		assert.Equal(t, 2, e.Peer)
		works(ctx, t, c)
	})
}

// A rank that is lost meanwhile fails c, and with it the attempt; one that gives up is as if it had not come.
func TestSubsetEnds(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() > 0 {
			gone, cancel := context.WithCancel(ctx)
			time.AfterFunc(20*time.Millisecond, cancel)
			_, err := ccl.Subset(gone, c, []int{0, 1, 2}, 0)
			wants(t, err, ccl.ErrCanceled)
		}
		meet(ctx)
		if c.Rank() == 1 {
			ccl.Die(c)
			<-c.Done() // until then it might take part
		}
		_, err := ccl.Subset(ctx, c, []int{0, 1, 2}, 0)
		e := wants(t, err, ccl.ErrRankLost)
		assert.Equal(t, 1, e.Peer)
	})
}

func TestSubsetRefuses(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for _, tc := range []struct {
			ranks []int
			want  string
		}{
			{[]int{0, 1, 2}, "rank 2 is in the list; the ranks are 0 to 1"},
			{[]int{-1, 0, 1}, "rank -1 is in the list; the ranks are 0 to 1"},
			{[]int{0, 1, 0}, "rank 0 is in the list twice"},
			{[]int{1 - c.Rank()}, fmt.Sprintf("this rank, %d, is not in the list [%d]", c.Rank(), 1-c.Rank())},
			{nil, fmt.Sprintf("this rank, %d, is not in the list []", c.Rank())},
		} {
			_, err := ccl.Subset(ctx, c, tc.ranks, 0)
			e := wants(t, err, ccl.ErrArgument)
			assert.EqualError(t, e, fmt.Sprintf("ccl: rank %d: Subset: %s", c.Rank(), tc.want))
		}
		_, err := ccl.Subset(ctx, c, []int{0, 1}, -1)
		assert.ErrorIs(t, err, ccl.ErrArgument)
		_, err = ccl.Subset(ctx, nil, []int{0}, 0)
		assert.ErrorIs(t, err, ccl.ErrArgument)
		works(ctx, t, c)
	})
}
