//go:build (nccl || rccl) && cgo && linux

package native

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// The row that is registered has the engine, whose facts follow from the library's version.
func TestBackend(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		row := *engine.Find(v.name)
		b := v.backend(row, engine.Devices{})
		require.Equal(t, v.title, b.Title)
		require.Equal(t, v.search.Names, b.Files.Names)
		device, err := b.Choose(-1, 1, 2)
		require.NoError(t, err)
		require.Equal(t, 1, device)
		l, err := b.Open()
		require.NoError(t, err)
		require.Equal(t, open(t, v).Version(), l.Version)
		require.True(t, l.Interruptible)
		require.True(t, l.Connects)
		for version, together := range map[int]bool{23004: false, 23102: true} {
			lib := *open(t, v)
			lib.version = version
			l, err := describe(&lib, nil)
			require.NoError(t, err)
			require.Equal(t, together, l.Gathers, version)
		}
	})
}
