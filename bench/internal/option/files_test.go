package option

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Reports do not overwrite each other, through links either, whether or not the file is there yet.
func TestFilesApart(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	require.NoError(t, os.WriteFile(at("there.json"), nil, 0o666))
	require.NoError(t, os.Symlink("there.json", at("link")))
	require.NoError(t, os.Symlink(at("link"), at("link2")))
	require.NoError(t, os.Link(at("there.json"), at("hard")))
	require.NoError(t, os.Symlink("new.json", at("dangling")))
	require.NoError(t, os.Symlink(".", at("dir")))
	require.NoError(t, os.Symlink("loop", at("loop")))
	require.NoError(t, os.Symlink(os.DevNull, at("null")))
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{at("there.json"), at("there.json"), true},
		{at("there.json"), at("link"), true},
		{at("link2"), at("link"), true},
		{at("there.json"), at("hard"), true},
		{at("new.json"), at("dangling"), true},
		{at("dir") + "/new.json", at("new.json"), true},
		{dir + "/./new.json", at("new.json"), true},
		{at("there.json"), at("new.json"), false},
		{at("loop"), at("new.json"), false},
		{os.DevNull, at("null"), false},
		{os.DevNull, os.DevNull, false},
		{"/no/such/a", "/no/such/b", false},
	} {
		for _, flags := range [][]string{{"-J", "-csv"}, {"-csv", "-html"}} {
			_, err := Parse([]string{flags[0], tc.a, flags[1], tc.b})
			if tc.same {
				require.EqualError(t, err, flags[1]+" "+tc.b+": "+flags[0]+" writes that file; give another name")
			} else {
				require.NoError(t, err, "%+v", tc)
			}
		}
	}
}
