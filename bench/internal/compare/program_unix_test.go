//go:build unix

package compare

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A program that ends well, but is no build of bench, is said to be none.
func TestNoBench(t *testing.T) {
	for _, tc := range []struct{ name, script, says string }{
		{"it takes no -J", "exit 0", " has ended well, but has not written the file that -J names: it is no build of bench"},
		{"it writes something else", "for last; do :; done; echo hello >$last", "it is not a file that -J writes: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "hello")
			require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+tc.script+"\n"), 0o700))
			p, err := newProgram(path, nil)
			require.NoError(t, err)
			_, err = p.run(t.Context())
			require.ErrorContains(t, err, path)
			require.ErrorContains(t, err, tc.says)
		})
	}
}
