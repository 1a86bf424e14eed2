package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		name       string
		color, key func(r int) int
		want       [5]string // rank/size of each in its new Comm; "" for none
		world      [5][]int  // its members, as ranks of the old Comm
	}{
		{"all", func(int) int { return 7 }, func(int) int { return 0 },
			[5]string{"0/5", "1/5", "2/5", "3/5", "4/5"}, [5][]int{{0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}, {0, 1, 2, 3, 4}}},
		{"backwards", func(int) int { return 0 }, func(r int) int { return -r },
			[5]string{"4/5", "3/5", "2/5", "1/5", "0/5"}, [5][]int{{4, 3, 2, 1, 0}, {4, 3, 2, 1, 0}, {4, 3, 2, 1, 0}, {4, 3, 2, 1, 0}, {4, 3, 2, 1, 0}}},
		{"odd and even", func(r int) int { return r % 2 }, func(int) int { return 0 },
			[5]string{"0/3", "0/2", "1/3", "1/2", "2/3"}, [5][]int{{0, 2, 4}, {1, 3}, {0, 2, 4}, {1, 3}, {0, 2, 4}}},
		{"without two", func(r int) int { return []int{0, -1, 0, -5, 0}[r] }, func(int) int { return 0 },
			[5]string{"0/3", "", "1/3", "", "2/3"}, [5][]int{{0, 2, 4}, nil, {0, 2, 4}, nil, {0, 2, 4}}},
		{"irregular", func(r int) int { return []int{1, 1, 2, 1, 1}[r] }, func(r int) int { return []int{5, 1, 0, 9, 2}[r] },
			[5]string{"2/4", "0/4", "0/1", "3/4", "1/4"}, [5][]int{{1, 4, 0, 3}, {1, 4, 0, 3}, {2}, {1, 4, 0, 3}, {1, 4, 0, 3}}},
		{"each alone", func(r int) int { return r }, func(int) int { return 0 },
			[5]string{"0/1", "0/1", "0/1", "0/1", "0/1"}, [5][]int{{0}, {1}, {2}, {3}, {4}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everywhere(t, 5, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				r := c.Rank()
				sub, err := c.Split(ctx, tc.color(r), tc.key(r))
				require.NoError(t, err)
				if sub == nil {
					assert.Empty(t, tc.want[r])
					works(ctx, t, c)
					return
				}
				defer sub.Close()
				assert.Equal(t, tc.want[r], fmt.Sprintf("%d/%d", sub.Rank(), sub.Size()))
				members := make([]int, sub.Size())
				if assert.NoError(t, ccl.AllGather(ctx, sub, members, []int{r})) {
					assert.Equal(t, tc.world[r], members)
				}
				works(ctx, t, sub)
				works(ctx, t, c) // the parent goes on, too
			})
		})
	}
}

// Splits of splits, closed in any order.
func TestSplitAgain(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		half, err := c.Split(ctx, c.Rank()/2, 0)
		require.NoError(t, err)
		one, err := half.Split(ctx, half.Rank(), 0)
		require.NoError(t, err)
		assert.Equal(t, 1, one.Size())
		assert.NoError(t, half.Close())
		works(ctx, t, one)
		works(ctx, t, c)
		assert.NoError(t, one.Close())
	})
}

// A Comm fails only for ranks of its own: its parent and its siblings go on.
func TestSplitFailsAlone(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		half, err := c.Split(ctx, c.Rank()%2, 0)
		require.NoError(t, err)
		defer half.Close()
		works(ctx, t, half)
		meet(ctx)
		if c.Rank() == 3 {
			half.Abort(errors.New("half is enough"))
		}
		if c.Rank()%2 == 1 {
			e := wants(t, sum(ctx, half), ccl.ErrAborted)
			assert.Equal(t, 1, e.Peer) // rank 3's rank there
		} else {
			for range 10 {
				works(ctx, t, half)
			}
			assert.NoError(t, half.Err())
		}
		works(ctx, t, c)
		assert.NoError(t, c.Err())
	})
}

// The failure of the parent is not its children's.
func TestSplitOutlivesItsParent(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		half, err := c.Split(ctx, c.Rank()/2, 0)
		require.NoError(t, err)
		defer half.Close()
		meet(ctx)
		if c.Rank() == 0 {
			c.Abort(errors.New("enough"))
		}
		<-c.Done()
		works(ctx, t, half)
		wants(t, second(c.Split(ctx, 0, 0)), ccl.ErrAborted)
		works(ctx, t, half)
	})
}

// Options and the failure callback are those of the parent.
func TestSplitInheritsOptions(t *testing.T) {
	told := make([]int, 2)
	world(t, 2, nil, func(r int) *ccl.Options {
		return &ccl.Options{OnFailure: func(*ccl.Error) { told[r]++ }}
	}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		sub, err := c.Split(ctx, 0, 0)
		require.NoError(t, err)
		defer sub.Close()
		if c.Rank() == 1 {
			sub.Abort(errors.New("enough"))
		}
		wants(t, sum(ctx, sub), ccl.ErrAborted)
		assert.Equal(t, 1, told[c.Rank()])
	})
}

// Splitting makes new Comms for ever: what they held is given back.
func TestSplitManyTimes(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for range 50 {
			sub, err := c.Split(ctx, 0, -c.Rank())
			require.NoError(t, err)
			works(ctx, t, sub)
			assert.NoError(t, sub.Close())
		}
	})
}
