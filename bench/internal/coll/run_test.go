package coll

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// Every collective of the table is a case of run, with every type, and makes its call: of one rank, which gets what it gives.
func TestRun(t *testing.T) {
	c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	defer c.Close()
	require.Len(t, runs, 14)
	for typ := range runs {
		for _, x := range All(typ) {
			require.Equal(t, typ, x.Type)
			if c.Supports(x.Kind, typ, ccl.Sum) != nil {
				require.True(t, x.Reduces && typ.Size() == 1, "%s of %v", x.Name, typ) // the engine does not reduce float8
				continue
			}
			s := NewShape(1, 0, 0, 3, nil)
			a, b := make([]byte, 3*typ.Size()), make([]byte, 3*typ.Size())
			for i := range a {
				a[i] = 0x3f
			}
			dst, src := x.Buffers(s, false, a, b)
			require.NoError(t, x.Run(t.Context(), c, s, dst, src, ccl.Sum), "%s of %v", x.Name, typ)
			require.Equal(t, a[:len(dst)], dst, "%s of %v", x.Name, typ)
		}
		require.ErrorContains(t, runs[typ](t.Context(), c, ccl.KindGraph, Shape{}, nil, nil, ccl.Sum), "no call of kind")
	}
}

func TestElements(t *testing.T) {
	b := make([]byte, 16)
	e := Elements[float32](b[:14])
	require.Len(t, e, 3)
	e[1] = 1
	require.Equal(t, []byte{0, 0, 0, 0, 0, 0, 0x80, 0x3f}, b[:8])
	require.Empty(t, Elements[int8](nil))
}
