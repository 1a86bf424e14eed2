//go:build !fault

package inject

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Without the tag nothing happens, and it costs nothing.
func TestOff(t *testing.T) {
	b := []byte{1}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		At("a")
		if Cut("a") || &Bytes("a", b)[0] != &b[0] {
			t.Fail()
		}
	}))
	require.False(t, On)
}
