package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
)

func newReducer(t testing.TB, c *ccl.Comm, grads []ccl.Buf, o *ddp.Options) *ddp.Reducer {
	r, err := ddp.New(t.Context(), c, grads, o)
	require.NoError(t, err)
	return r
}
