package ccl_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A rank goes on alone in the store of a job that has begun, and takes in the processes that wait there.
func TestAlone(t *testing.T) {
	j := newGrowing(t)
	j.start(2, 0, nil, func(c *ccl.Comm) {
		rank := c.Rank()
		c.Close()
		if rank > 0 {
			return
		}
		alone, err := ccl.Alone(j.ctx, j.options(ccl.Options{}))
		if !assert.NoError(t, err) {
			return
		}
		assert.Equal(t, 1, alone.Size())
		assert.Empty(t, alone.Fresh())
		works(j.ctx, t, alone)
		for range 2 {
			j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
				if assert.NoError(t, err) {
					if c.Size() < 3 {
						c = j.growAll(c, 9)
					}
					defer c.Close()
					works(j.ctx, t, c)
				}
			})
		}
		j.waits(2)
		grown := alone
		for grown.Size() < 3 { // one may not answer within the lead's second
			grown = j.growAll(grown, 9)
		}
		defer grown.Close()
		assert.Equal(t, 3, grown.Size())
		assert.Contains(t, grown.Fresh(), 2)
		works(j.ctx, t, grown)
	})
	j.all.Wait()
	var none context.Context
	_, err := ccl.Alone(none, nil)
	require.ErrorIs(t, err, ccl.ErrArgument)
}
