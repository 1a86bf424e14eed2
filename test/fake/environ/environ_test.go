//go:build cgo && linux

package environ

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a thread holds of the environment stays as it was, whatever is set and unset meanwhile; a look after that sees the change.
func TestHeld(t *testing.T) {
	const name = "GOCCL_ENVIRON_TEST"
	require.NoError(t, os.Unsetenv(name))
	path := os.Getenv("PATH")
	require.NotEmpty(t, path)
	var held []View
	for i := range 100 { // and others, for which there is no room in the array
		held = append(held, Look())
		t.Setenv(fmt.Sprintf("%s_%d", name, i), "x")
		t.Setenv(name, fmt.Sprint("value ", i))
	}
	require.NoError(t, os.Unsetenv(name))
	for i, v := range append(held, Look()) {
		want := ""
		if i > 0 && i < len(held) {
			want = fmt.Sprint("value ", i-1)
		}
		require.Equal(t, want, v.Get(name), "%d", i)
		require.Equal(t, path, v.Get("PATH"), "%d", i)
		for k := range 100 {
			other := v.Get(fmt.Sprintf("%s_%d", name, k))
			require.Equal(t, k < i, other == "x", "%d of %d", k, i)
		}
	}
}
