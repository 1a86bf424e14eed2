package ranktest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// deaf is a test that notes that it has failed.
type deaf struct {
	testing.TB
	failed bool
}

func (d *deaf) Helper()               {}
func (d *deaf) Errorf(string, ...any) { d.failed = true }

func TestRanks(t *testing.T) {
	all := Of(t, 3, plane.PrivateHost(), plane.Options{}, func(m *plane.Member) int { return m.Group.Rank() })
	require.Equal(t, []int{0, 1, 2}, all)
	AtOnce(t, all, func(rank int) *call.Fault {
		all[rank]++
		return nil
	})
	require.Equal(t, []int{1, 2, 3}, all)
}

func TestSame(t *testing.T) {
	for _, got := range [][]int32{Vector(0, 1, 5), Vector(1, 0, 5), Vector(0, 0, 4), nil} {
		d := &deaf{}
		Same(d, Vector(0, 0, 5), got, "")
		require.True(t, d.failed, "%v", got)
	}
	d := &deaf{}
	Same(d, Sum(1, 0, 5), Vector(0, 0, 5), "")
	require.False(t, d.failed)
}
