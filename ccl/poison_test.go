package ccl_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A rank whose call fails while others have its offer already, and write into its memory, returns only when
// they no longer do: also if it fails before it has theirs.
func TestNobodyWritesAfterAnEarlyFailure(t *testing.T) {
	const elements = 256 << 10
	together(t, 3, func(ctx context.Context, t *testing.T, world *ccl.Comm) {
		dst, src := make([]uint32, elements), make([]uint32, elements)
		for round := range 150 {
			c, err := world.Split(ctx, 0, 0)
			require.NoError(t, err)
			if world.Rank() == 1 {
				time.AfterFunc(time.Duration(round)*3*time.Microsecond, func() { c.Abort(errors.New("on purpose")) })
			}
			for err = nil; err == nil; {
				err = ccl.AllReduce(ctx, c, dst, src, ccl.Sum)
			}
			require.ErrorIs(t, err, ccl.ErrAborted)
			for i := range dst {
				dst[i] = 0xdeadbeef
			}
			require.NoError(t, ccl.Barrier(ctx, world)) // all have failed
			for i := range dst {
				if dst[i] != 0xdeadbeef {
					t.Fatalf("round %d: element %d was written after the call had failed", round, i)
				}
			}
			require.NoError(t, c.Close())
		}
	})
}
