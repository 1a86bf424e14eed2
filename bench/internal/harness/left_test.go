package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/progress"
	"github.com/goccl/goccl/ccl"
)

func TestCurves(t *testing.T) {
	s := &session{o: &option.Options{
		Collectives: []string{"allreduce", "allgather", "barrier"}, Types: []ccl.Type{ccl.TypeFloat32, ccl.TypeInt8}, Ops: []ccl.Op{ccl.Sum, ccl.Max, ccl.Min},
	}}
	require.Equal(t, 2*3+2+1, s.curves())
}

// The ranks that have no output, and runs without a screen, estimate nothing.
func TestLeftText(t *testing.T) {
	var none *output
	none.measured(0, time.Second, nil)
	require.Empty(t, none.left(0))
	require.Empty(t, (&output{}).left(0))
	o := &output{clock: progress.New(1, []int{8, 8}, func(int) int { return 1 }, 0)}
	require.Empty(t, o.left(0))
	o.measured(0, 3*time.Second, nil)
	require.Equal(t, ", 3s left", o.left(1))
}
