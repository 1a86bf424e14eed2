//go:build fault

package inject

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlan(t *testing.T) {
	defer Plan("")
	for _, bad := range []string{"a", "a:b", "a:0:kill", "a:x:kill"} {
		require.Error(t, Plan(bad), bad)
	}
	require.NoError(t, Plan("a:2:cut,b:1:flip,c:1:mine"))
	require.False(t, Cut("a"))
	require.True(t, Cut("a"))
	require.False(t, Cut("a"))
	require.NotEqual(t, []byte{1, 2, 3}, Bytes("b", []byte{1, 2, 3}))
	require.Equal(t, []byte{1, 2, 3}, Bytes("b", []byte{1, 2, 3}))
	called := 0
	Set("mine", func() { called++ })
	At("c")
	At("c")
	require.Equal(t, 1, called)
	require.NoError(t, Plan("d:1:from:4294967280"))
	require.EqualValues(t, 4294967280, From("d"))
	require.EqualValues(t, 4294967280, From("d"))
	require.Zero(t, From("a"))
}
