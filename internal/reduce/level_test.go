package reduce

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestForce(t *testing.T) {
	require.Equal(t, Levels()[0], Kernel())
	require.Equal(t, "generic", Levels()[len(Levels())-1])

	restore, err := Force("generic")
	require.NoError(t, err)
	require.Equal(t, "generic", Kernel())
	restore()
	require.Equal(t, Levels()[0], Kernel())

	_, err = Force("mmx")
	require.ErrorContains(t, err, `reduce: no kernels "mmx" on this CPU; it has `)
	require.Equal(t, Levels()[0], Kernel())
}

func TestLevelsAreWhole(t *testing.T) {
	for _, l := range levels {
		eachKind(func(typ op.Type) {
			require.NotNil(t, l.scale[typ], "%s %v", l.name, typ)
		})
		for typ := range op.Types {
			for o := range op.Ops {
				require.Equal(t, op.Reduces(typ, o), l.reduce[typ][o] != nil, "%s %v %v", l.name, typ, o)
				require.Equal(t, op.Reduces(typ, o), l.stream[typ][o] != nil, "%s %v %v", l.name, typ, o)
			}
		}
		require.NotNil(t, l.copy)
	}
}
