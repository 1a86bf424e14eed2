//go:build unix

package ckpt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever has made a checkpoint does not lead Load and Export to other files of the user's: links stay in the folder that was given.
func TestLinksOutOfACheckpoint(t *testing.T) {
	const head = `{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}`
	const where = `{"weight_map":{"a":"part"}}`
	for name, tc := range map[string]struct{ file, dir, to, says string }{
		"the model, by a path up":      {modelName, "given", "../home/secret", "links are followed only inside"},
		"the model, by a whole path":   {modelName, "given", "", "links are followed only inside"},
		"a part":                       {"part", "given", "../home/secret", "links are followed only inside"},
		"out of a cache":               {modelName, "models--a--b/snapshots/1", "../../../home/secret", "links are followed only inside"},
		"into blobs that are no one's": {modelName, "given/snapshots/1", "../../blobs/1", "links are followed only inside"},
		"inside":                       {modelName, "given", "beside", ""},
		"a part inside":                {"part", "given", "beside", ""},
		"Hugging Face's cache":         {modelName, "models--a--b/snapshots/1", "../../blobs/1", ""},
		"a part in that cache":         {"part", "models--a--b/snapshots/1", "../../blobs/1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			dir := filepath.Join(top, tc.dir)
			put := func(name, text string) {
				name = filepath.Join(top, name)
				require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o777))
				require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
			}
			require.NoError(t, os.MkdirAll(dir, 0o777))
			for _, name := range []string{"home/secret", "given/beside", "given/blobs/1", "models--a--b/blobs/1"} {
				put(name, stFile(head, 2))
			}
			if tc.file != modelName {
				put(filepath.Join(tc.dir, modelIndexName), where)
			}
			to := tc.to
			if to == "" {
				to = filepath.Join(top, "home/secret")
			}
			require.NoError(t, os.Symlink(to, filepath.Join(dir, tc.file)))
			got := []uint8{9, 9}
			load := Load(t.Context(), alone(t), dir, nil, []Tensor{{Name: "a", Shape: []int{2}, Data: got}})
			export := Export(dir, filepath.Join(top, "exported"), 0, nil)
			_, inspect := Inspect(dir)
			if tc.says == "" {
				require.NoError(t, load)
				require.NoError(t, export)
				require.NoError(t, inspect)
				require.Equal(t, []uint8{0, 1}, got)
				return
			}
			for _, err := range []error{load, export, inspect} {
				require.ErrorContains(t, err, tc.says)
			}
			require.Equal(t, []uint8{9, 9}, got)
			require.NoDirExists(t, filepath.Join(top, "exported"))
		})
	}

	// A part of a checkpoint of this package, whose index has no checksums for it.
	dir := saved(t, 1)
	part := filepath.Join(dir, partName(0, 1))
	moved := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.Rename(part, moved))
	require.NoError(t, os.Symlink(moved, part))
	require.ErrorContains(t, Load(t.Context(), alone(t), dir, nil, held(0, 1, false)), "links are followed only inside")
	require.ErrorContains(t, Export(dir, dir+"x", 0, nil), "links are followed only inside")
	c, err := Verify(dir)
	require.NoError(t, err)
	require.ErrorContains(t, c.Files[0].Damage, "links are followed only inside")
}
