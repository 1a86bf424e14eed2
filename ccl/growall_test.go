package ccl_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// growAll is GrowAll until it takes somebody in, which is when those that are announced answer within the lead's second. c is closed.
func (j *growing) growAll(c *ccl.Comm, most int) *ccl.Comm {
	for j.ctx.Err() == nil {
		next, err := ccl.GrowAll(j.ctx, c, most)
		if !assert.NoError(j.t, err) {
			break
		}
		if next != c {
			c.Close()
			return next
		}
	}
	return c
}

// All that wait come in together, and never more than the job may have. One that has announced itself and is gone keeps nobody out.
func TestGrowAll(t *testing.T) {
	for _, tc := range []struct{ came, gone, most, size int }{{3, 0, 9, 5}, {3, 0, 4, 4}, {2, 1, 9, 4}} {
		t.Run(fmt.Sprint(tc), func(t *testing.T) {
			j := newGrowing(t)
			check := func(c *ccl.Comm) {
				defer c.Close()
				for c.Size() < tc.size { // one that came did not answer within the lead's second
					c = j.growAll(c, tc.most)
				}
				assert.Equal(t, tc.size, c.Size())
				works(j.ctx, t, c)
				if c.Rank() == 0 && tc.came+2 > tc.most {
					assert.NoError(t, j.hall.Set(j.ctx, "goccl/over", nil))
				}
				same, err := ccl.GrowAll(j.ctx, c, tc.size)
				assert.NoError(t, err)
				assert.Same(t, c, same, "it has as many as it may have")
				same, err = ccl.GrowAll(j.ctx, c, 1)
				assert.NoError(t, err)
				assert.Same(t, c, same, "none is taken away")
				assert.NoError(t, ccl.Barrier(j.ctx, c))
			}
			j.start(2, 0, []string{"a", "b"}, func(c *ccl.Comm) {
				same, err := ccl.GrowAll(j.ctx, c, 9)
				assert.NoError(t, err)
				assert.Same(t, c, same, "nobody waits")
				if assert.NoError(t, ccl.Barrier(j.ctx, c)); c.Rank() == 0 {
					for range tc.came {
						j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
							if tc.came+2 > tc.most && err != nil {
								assert.ErrorIs(t, err, ccl.ErrUnused)
							} else if assert.NoError(t, err) {
								check(c)
							}
						})
					}
					j.waits(tc.came)
					_, err := j.hall.Add(j.ctx, "goccl/came/1", int64(tc.gone))
					assert.NoError(t, err)
				}
				assert.NoError(t, ccl.Barrier(j.ctx, c))
				check(j.growAll(c, tc.most))
			})
		})
	}
}

// Spares wait, too, and come in as workers.
func TestGrowAllTakesSpares(t *testing.T) {
	j := newGrowing(t)
	j.start(2, 1, nil, func(c *ccl.Comm) {
		if c.Size() == 2 {
			c = j.growAll(c, 5)
		}
		defer c.Close()
		assert.Equal(t, 3, c.Size())
		assert.Zero(t, c.Waiting())
		works(j.ctx, t, c)
	})
}

// Ranks that do not ask for the same hear it.
func TestGrowAllMismatch(t *testing.T) {
	for want, calls := range map[string][2]func(j *growing, c *ccl.Comm) (*ccl.Comm, error){
		"rank 1 calls Grow, and rank 0 GrowAll": {
			func(j *growing, c *ccl.Comm) (*ccl.Comm, error) { return ccl.GrowAll(j.ctx, c, 4) },
			func(j *growing, c *ccl.Comm) (*ccl.Comm, error) { return ccl.Grow(j.ctx, c, 4) },
		},
		"rank 1 wants 5 ranks, and rank 0 4": {
			func(j *growing, c *ccl.Comm) (*ccl.Comm, error) { return ccl.GrowAll(j.ctx, c, 4) },
			func(j *growing, c *ccl.Comm) (*ccl.Comm, error) { return ccl.GrowAll(j.ctx, c, 5) },
		},
	} {
		j := newGrowing(t)
		j.start(2, 0, nil, func(c *ccl.Comm) {
			defer c.Close()
			_, err := calls[c.Rank()](j, c)
			assert.ErrorIs(t, err, ccl.ErrArgument)
			assert.ErrorContains(t, err, want)
		})
		j.all.Wait()
		require.False(t, t.Failed())
	}
}
