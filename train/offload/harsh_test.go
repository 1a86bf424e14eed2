package offload_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/zero"
)

// An Update that fails in the middle ends the Comm, whatever its error is: a part of the shards is updated.
func TestUpdateFails(t *testing.T) {
	for _, cause := range []error{errors.New("mine"), zero.ErrNotFinite, &ccl.Error{Code: ccl.ErrTimeout}} {
		for _, disk := range []*offload.Options{nil, {States: 2, Bucket: 1}} {
			t.Run(fmt.Sprint(cause, disk != nil), func(t *testing.T) {
				ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
					c := ccltest.Split(t, world, 0, 0)
					x := newToy[float32, float32](t, c, disk, zero.Options{Stage: 3})
					defer x.close(t)
					require.NoError(t, x.backward(t, c, 1, 0))
					n := 0
					err := x.m.Step(t.Context(), func(zero.Piece, []float32, []float32) error {
						if n++; n == 2 && c.Rank() == 1 {
							return cause
						}
						return nil
					})
					if c.Rank() == 1 {
						require.ErrorIs(t, err, cause)
						require.Error(t, c.Err())
					}
					require.Error(t, x.step(t, c, 2, 1))
				})
			})
		}
	}
}
