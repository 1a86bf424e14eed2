//go:build oneccl && cgo && linux

package oneccl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A mark that has passed is the next one that is set.
func TestMarksAreUsedAgain(t *testing.T) {
	var ms marks
	one, two := &mark{of: &ms}, &mark{of: &ms}
	one.free()
	two.free()
	got, err := ms.get()
	require.NoError(t, err)
	require.Same(t, two, got)
	got, err = ms.get()
	require.NoError(t, err)
	require.Same(t, one, got)
	require.Empty(t, ms.idle)
	require.NoError(t, ms.close(), "there are no events")
}
