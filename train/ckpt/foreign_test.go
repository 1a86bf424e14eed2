package ckpt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const modelIndexName = modelName + indexEnd

// stFile is a file in safetensors format of one-byte tensors, whose values are those of the byte they lie at.
func stFile(head string, data int) string { return string((&stCase{head: head, data: data}).file()) }

// Of several files with one tensor the index says which counts; what the index does not name is taken where it is alone; what
// nobody asks for may be of any type.
func TestForeignDirectories(t *testing.T) {
	const (
		a   = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`
		ab  = `{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}`
		odd = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"q":{"dtype":"F4","shape":[4],"data_offsets":[2,4]},"":{"dtype":"U8","shape":[1],"data_offsets":[4,5]},` +
			`"m":{"dtype":"BOOL","shape":[3],"data_offsets":[5,8]}}`
	)
	for name, tc := range map[string]struct {
		files map[string]string
		ask   Tensor
		want  any    // what is loaded
		says  string // or the error
	}{
		"one file":           {map[string]string{modelName: stFile(a, 2)}, Tensor{Name: "a", Shape: []int{2}, Data: []uint8{9, 9}}, []uint8{0, 1}, ""},
		"the index decides":  {map[string]string{"1": stFile(a, 2), "2": stFile(ab, 4), modelIndexName: `{"weight_map":{"a":"2","x":"1"}}`}, Tensor{Name: "a", Shape: []int{2}, Data: []uint8{9, 9}}, []uint8{2, 3}, ""},
		"the other way":      {map[string]string{"1": stFile(a, 2), "2": stFile(ab, 4), modelIndexName: `{"weight_map":{"a":"1","b":"2"}}`}, Tensor{Name: "a", Shape: []int{2}, Data: []uint8{9, 9}}, []uint8{0, 1}, ""},
		"not in the index":   {map[string]string{"1": stFile(a, 2), "2": stFile(ab, 4), modelIndexName: `{"weight_map":{"a":"1","x":"2"}}`}, Tensor{Name: "b", Shape: []int{2}, Data: []uint8{9, 9}}, []uint8{0, 1}, ""},
		"nowhere said":       {map[string]string{"1": stFile(a, 2), "2": stFile(ab, 4), modelIndexName: `{"weight_map":{"y":"1","x":"2"}}`}, Tensor{Name: "b", Shape: []int{2}, Data: []uint8{9, 9}}, nil, `tensor "a" is also in another file`},
		"the file lacks it":  {map[string]string{"1": stFile(a, 2), modelIndexName: `{"weight_map":{"c":"1"}}`}, Tensor{Name: "c", Shape: []int{2}, Data: []uint8{9, 9}}, nil, modelIndexName + ` has no tensor "c"`},
		"beside one file":    {map[string]string{modelName: stFile(ab, 4), "1": stFile(a, 2), modelIndexName: `{"weight_map":{"a":"1"}}`}, Tensor{Name: "a", Shape: []int{2}, Data: []uint8{9, 9}}, []uint8{2, 3}, ""},
		"only beside it":     {map[string]string{modelName: stFile(ab, 4), "1": stFile(a, 2), modelIndexName: `{"weight_map":{"c":"1"}}`}, Tensor{Name: "c", Shape: []int{2}, Data: []uint8{9, 9}}, nil, modelName + ` has no tensor "c"`},
		"no map":             {map[string]string{modelIndexName: `{"metadata":{}}`}, Tensor{Name: "a", Data: []uint8{9}}, nil, "has no weight_map"},
		"another directory":  {map[string]string{modelIndexName: `{"weight_map":{"a":"sub/1"}}`}, Tensor{Name: "a", Data: []uint8{9}}, nil, `"sub/1"`},
		"a control sequence": {map[string]string{modelIndexName: `{"weight_map":{"a":"\u001b[2J"}}`}, Tensor{Name: "a", Data: []uint8{9}}, nil, `"\x1b[2J"`},
		"beside odd ones":    {map[string]string{modelName: stFile(odd, 8)}, Tensor{Name: "a", Shape: []int{2}, Data: []uint8{9, 9}}, []uint8{0, 1}, ""},
		"an odd one":         {map[string]string{modelName: stFile(odd, 8)}, Tensor{Name: "q", Shape: []int{4}, Data: []uint8{9, 9, 9, 9}}, nil, `tensor "q" is "F4" [4] in`},
		"truth values":       {map[string]string{modelName: stFile(odd, 8)}, Tensor{Name: "m", Shape: []int{3}, Data: []bool{false, false, false}}, []bool{true, true, true}, ""},
		"truth as numbers":   {map[string]string{modelName: stFile(odd, 8)}, Tensor{Name: "m", Shape: []int{3}, Data: []uint8{9, 9, 9}}, nil, `tensor "m" is BOOL [3]`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, text := range tc.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666))
			}
			err := Load(t.Context(), alone(t), dir, nil, []Tensor{tc.ask})
			if tc.says != "" {
				require.ErrorContains(t, err, tc.says)
				require.NotContains(t, err.Error(), "\x1b")
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, tc.ask.Data)
		})
	}
}

// Export leaves out nothing that it cannot write, unless it is told to.
func TestExportOfOddTypes(t *testing.T) {
	dir := t.TempDir()
	head := `{"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]},"q":{"dtype":"F4","shape":[2,2],"data_offsets":[2,4]}}`
	require.NoError(t, os.WriteFile(filepath.Join(dir, modelName), []byte(stFile(head, 4)), 0o666))
	to := filepath.Join(t.TempDir(), "x")
	require.ErrorContains(t, Export(dir, to, 0, nil), `tensor "q" is "F4" [2 2], which Export cannot write: leave it out`)
	require.NoError(t, Export(dir, to, 0, func(name string, shape []int) (string, []int) {
		if name == "q" {
			require.Equal(t, []int{2, 2}, shape)
			return "", nil
		}
		return name, shape
	}))
	got := []bool{true, false}
	require.NoError(t, Load(t.Context(), alone(t), to, nil, []Tensor{{Name: "a", Shape: []int{2}, Data: got}}))
	require.Equal(t, []bool{false, true}, got)
}

// A header that no reader takes is not written.
func TestExportOfALongHeader(t *testing.T) {
	dir := saved(t, 1)
	to := filepath.Join(t.TempDir(), "x")
	d := &disk{header: 200}
	require.ErrorContains(t, d.export(dir, to, modelName, 0, nil), "model.safetensors would have a header of 208 bytes, and readers of safetensors take at most 200: give a smaller size")
	require.Empty(t, names(t, filepath.Dir(to)))
	require.NoError(t, d.export(dir, to, modelName, 1, nil))
	require.Len(t, names(t, to), 4)
}

// An index of another program's is read or refused, and leads to no file outside of its directory.
func FuzzWeightMap(f *testing.F) {
	f.Add([]byte(`{"weight_map":{"t":"model.safetensors"}}`))
	f.Add([]byte(`{"weight_map":{"t":"../../etc/passwd","u":"/etc/passwd","v":"a\\..\\b"}}`))
	f.Add([]byte(`{"weight_map":null}`))
	f.Add([]byte(`{`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, modelIndexName), text, 0o600); err != nil {
			t.Skip(err)
		}
		ix, err := foreign(folder(dir), modelName)
		if err != nil {
			return
		}
		for _, f := range ix.Files {
			if f.Name != modelIndexName { // the one file that is there
				t.Fatalf("%s: %q", text, f.Name)
			}
		}
	})
}
