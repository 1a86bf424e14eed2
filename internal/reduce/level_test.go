package reduce

import (
	"testing"

	"github.com/stretchr/testify/require"
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
		eachKind(func(typ Type) {
			for op := range Ops {
				require.NotNil(t, l.reduce[typ][op], "%s %v %v", l.name, typ, op)
				require.NotNil(t, l.stream[typ][op], "%s %v %v", l.name, typ, op)
			}
			require.NotNil(t, l.scale[typ], "%s %v", l.name, typ)
		})
		require.NotNil(t, l.copy)
	}
}
