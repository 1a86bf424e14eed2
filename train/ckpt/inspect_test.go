package ckpt

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// What a checkpoint holds is listed, whoever has written it, and of damaged files each is named, and each that is whole.
func TestInspect(t *testing.T) {
	dir := saved(t, 3)
	tensors := []TensorInfo{{"m", "F32", []int{7, 10}}, {"s", "I64", nil}, {"v", "F64", []int{7, 10}}}
	for _, look := range []func(string) (*Contents, error){Inspect, Verify} {
		c, err := look(dir)
		require.NoError(t, err)
		require.Equal(t, json.RawMessage(`"state"`), c.State)
		require.Equal(t, tensors, c.Tensors)
		require.Len(t, c.Files, 3)
		files := map[string]int{}
		for i, f := range c.Files {
			require.Equal(t, partName(i, 3), f.Name)
			info, err := os.Stat(filepath.Join(dir, f.Name))
			require.NoError(t, err)
			require.Equal(t, info.Size(), f.Size)
			require.NoError(t, f.Damage)
			for _, name := range f.Tensors {
				files[name]++
			}
		}
		require.Equal(t, map[string]int{"m": 3, "v": 3, "s": 1}, files)
	}
	to := filepath.Join(t.TempDir(), "hf")
	require.NoError(t, Export(dir, to, 1, nil))
	c, err := Verify(to)
	require.NoError(t, err)
	require.Nil(t, c.State)
	for i := range c.Tensors {
		if len(c.Tensors[i].Shape) == 0 {
			c.Tensors[i].Shape = nil
		}
	}
	require.Equal(t, tensors, c.Tensors)
	require.Len(t, c.Files, 3)

	// One part is missing, and of another one a bit is wrong, which only Verify reads.
	require.NoError(t, os.Remove(filepath.Join(dir, partName(0, 3))))
	require.NoError(t, flip(filepath.Join(dir, partName(2, 3)), -1))
	c, err = Inspect(dir)
	require.NoError(t, err)
	require.ErrorContains(t, c.Files[0].Damage, "is missing")
	require.NoError(t, c.Files[1].Damage)
	require.NoError(t, c.Files[2].Damage)
	c, err = Verify(dir)
	require.NoError(t, err)
	require.ErrorContains(t, c.Files[0].Damage, "is missing")
	require.NoError(t, c.Files[1].Damage)
	require.ErrorContains(t, c.Files[2].Damage, "is damaged between bytes 0 and")
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		err := Load(t.Context(), c, dir, nil, held(c.Rank(), 2, false))
		require.ErrorContains(t, err, partName(0, 3)+" is missing")
		require.ErrorContains(t, err, "whole by size: "+partName(1, 3)+", "+partName(2, 3))
	})

	_, err = Inspect(filepath.Join(dir, "none"))
	require.ErrorIs(t, err, fs.ErrNotExist)
}
