package imports

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// binary reports whether a file begins as a program or a library does: ELF, Mach-O, PE.
func binary(head []byte) bool {
	for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xca\xfe\xba\xbe", "MZ\x90"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return false
}

// No built program is tracked: go build leaves one in the folder in which it is called, and git add takes it along.
func TestNoBinaries(t *testing.T) {
	out, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Skipf("hardware: no git, or no repository here: %v", err)
	}
	var bad []string
	names := bytes.Split(bytes.TrimSuffix(out, []byte{0}), []byte{0})
	require.Greater(t, len(names), 500)
	for _, name := range names {
		f, err := os.Open(filepath.Join("../..", string(name)))
		if err != nil {
			continue // removed, and not committed yet
		}
		head := make([]byte, 4)
		if n, _ := f.Read(head); binary(head[:n]) {
			bad = append(bad, string(name))
		}
		f.Close()
	}
	require.Empty(t, bad)
	require.True(t, binary([]byte("\x7fELF\x02")))
	require.False(t, binary([]byte("package imports")))
}
