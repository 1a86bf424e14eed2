package pp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/pp"
)

func newPipeline(t testing.TB, c *ccl.Comm, o *pp.Options) *pp.Pipeline {
	p, err := pp.New(t.Context(), c, o)
	require.NoError(t, err)
	return p
}
