package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// TestSupports: the CPU engine makes every call in place, and takes no hints. What a library lacks is TestProductRefused and
// TestProductMesh of ccl/internal/native.
func TestSupports(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		for _, k := range []ccl.Kind{ccl.KindAllReduce, ccl.KindAllToAll, ccl.KindAllToAllV, ccl.KindSendRecv} {
			assert.NoError(t, ccl.SupportsInPlace(c, k), "%v", k)
		}
		for text, tc := range map[string]struct {
			hints ccl.Hints
			want  error
		}{
			"no hints":      {ccl.Hints{}, nil},
			"an order":      {ccl.Hints{LaunchOrder: true}, ccl.ErrUnsupported},
			"wrong numbers": {ccl.Hints{MinCTAs: 2, MaxCTAs: 1}, ccl.ErrArgument},
		} {
			if err := ccl.SupportsHints(c, tc.hints); tc.want == nil {
				assert.NoError(t, err, text)
			} else {
				assert.ErrorIs(t, err, tc.want, text)
			}
		}
		assert.EqualError(t, ccl.SupportsHints(c, ccl.Hints{LaunchOrder: true}),
			map[int]string{0: "ccl: rank 0: ", 1: "ccl: rank 1: "}[c.Rank()]+"SupportsHints: Options.Hints: the backend cpu takes no hints, but is given launch-order=1")
	}, ccltest.With(ccl.Options{Backend: "cpu"}))
	assert.Error(t, ccl.SupportsInPlace(nil, ccl.KindAllToAll))
	assert.Error(t, ccl.SupportsHints(nil, ccl.Hints{}))
}
