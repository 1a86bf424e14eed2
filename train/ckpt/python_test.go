package ckpt

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/test/cache"
)

// pythonPackages are the directory of safetensors and numpy, fetched once.
func pythonPackages(t *testing.T) string {
	t.Helper()
	return cache.Wheels(t, "20 MB", "safetensors-0.8.0", "safetensors==0.8.0", "numpy==2.4.6")
}

// pythonTensor is what Python says of a tensor.
type pythonTensor struct {
	Type   string    `json:"dtype"`
	Shape  []int     `json:"shape"`
	Sum    string    `json:"sha256"`
	Values []float64 `json:"values"`
}

// python reads files, by their names.
func python(t *testing.T, files ...string) (got map[string]map[string]pythonTensor) {
	t.Helper()
	out := cache.Python(t, pythonPackages(t), "", append([]string{filepath.Join("testdata", "read.py")}, files...)...)
	require.NoError(t, json.Unmarshal(out, &got))
	require.Len(t, got, len(files))
	return got
}

// ofAllTypes is a tensor of each type that ccl names.
func ofAllTypes() []Tensor {
	ts := []Tensor{
		{Name: "i8", Data: []int8{-1, 2, 3}}, {Name: "u8", Data: []uint8{1, 2, 255}},
		{Name: "i16", Data: []int16{-1, 2, 3}}, {Name: "u16", Data: []uint16{1, 2, 65535}},
		{Name: "i32", Data: []int32{-1, 2, 3}}, {Name: "u32", Data: []uint32{1, 2, 3}},
		{Name: "i64", Data: []int64{-1, 2, 3}}, {Name: "u64", Data: []uint64{1, 2, 3}},
		{Name: "int", Data: []int{-1, 2, 3}}, {Name: "uint", Data: []uint{1, 2, 3}},
		{Name: "f32", Data: []float32{-.1, 2, 3}}, {Name: "f64", Data: []float64{-.1, 2, 3}},
		{Name: "f16", Data: []ccl.Float16{1, 2, 0x3c00}}, {Name: "bf16", Data: []ccl.BFloat16{1, 2, 0x3f80}},
		{Name: "f8e4", Data: []ccl.Float8E4M3{1, 2, 3}}, {Name: "f8e5", Data: []ccl.Float8E5M2{1, 2, 3}},
	}
	for i := range ts {
		ts[i].Shape = []int{3}
	}
	return ts
}

// Python's safetensors opens every file of a checkpoint and of an export, and sees equal values.
func TestPython(t *testing.T) {
	pythonPackages(t)
	const n = 3
	dir, types := saved(t, n), Step(t.TempDir(), 1)
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) { require.NoError(t, Save(t.Context(), c, types, nil, ofAllTypes())) })
	one, several, typed := filepath.Join(t.TempDir(), "one"), filepath.Join(t.TempDir(), "several"), filepath.Join(t.TempDir(), "typed")
	require.NoError(t, Export(dir, one, 0, nil))
	require.NoError(t, Export(dir, several, 1, nil))
	require.NoError(t, Export(types, typed, 0, nil))
	var files []string
	for _, d := range []string{dir, types, one, several, typed} {
		found, err := filepath.Glob(filepath.Join(d, "*.safetensors"))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Len(t, files, n+1+1+3+1)
	got := python(t, files...)

	// Each part has what its rank has written: all of them together have every element once.
	elements := map[string]int{}
	for _, f := range files[:n] {
		for name, p := range got[f] {
			name, _, _ = strings.Cut(name, "#")
			elements[name] += len(p.Values)
			if name == "s" {
				require.Equal(t, []float64{42}, p.Values)
			}
		}
	}
	require.Equal(t, map[string]int{"m": 70, "v": 70, "s": 1}, elements)
	require.Len(t, got[files[n]], len(ofAllTypes()))

	var counted []float64
	for i := range 70 {
		counted = append(counted, float64(i))
	}
	for _, d := range []string{one, several} {
		all := map[string]pythonTensor{}
		for _, f := range files {
			if filepath.Dir(f) == d {
				for name, p := range got[f] {
					p.Sum = ""
					all[name] = p
				}
			}
		}
		require.Equal(t, map[string]pythonTensor{"m": {"F32", shape, "", counted}, "v": {"F64", shape, "", counted}, "s": {"I64", []int{}, "", []float64{42}}}, all)
	}
	for _, x := range ofAllTypes() {
		p, _, err := describe([]Tensor{x})
		require.NoError(t, err)
		sum := sha256.Sum256(bytesOf(x.Data))
		require.Equal(t, pythonTensor{p[0].Type, []int{3}, hex.EncodeToString(sum[:]), nil}, got[filepath.Join(typed, modelName)][x.Name])
	}
}
