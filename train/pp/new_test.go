package pp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/pp"
)

// schedules are those that pipelines run, and how many chunks each is for.
var schedules = []struct {
	name   string
	s      pp.Schedule
	chunks int
}{{"the default", nil, 1}, {"GPipe", pp.GPipe, 1}, {"1F1B", pp.OneFOneB, 1}, {"ZB-H1", pp.ZBH1, 1}, {"two chunks", pp.Interleaved(2), 2}, {"three chunks", pp.Interleaved(3), 3}}

func newPipeline(t testing.TB, c *ccl.Comm, o *pp.Options) *pp.Pipeline {
	p, err := pp.New(t.Context(), c, o)
	require.NoError(t, err)
	return p
}
