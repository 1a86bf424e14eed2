package ordered

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShapes: docs/arm64.md names each shape that make herd looks at, and each shape that must never be has one beside it in which
// an error is planted, or is the same on another CPU.
func TestShapes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/arm64.md")
	require.NoError(t, err)
	files, err := filepath.Glob("testdata/armv8/*.litmus")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	planted := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".litmus")
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "AArch64 "+name+"\n"), file)
		verdict, shape, _ := strings.Cut(name, "-")
		require.Contains(t, []string{"never", "sometimes"}, verdict, file)
		require.True(t, strings.Contains(string(page), "`"+shape+"`"), "docs/arm64.md does not name %s", shape)
		if verdict == "sometimes" {
			planted++
			require.Contains(t, string(text), "(* Planted:", file)
		}
	}
	require.GreaterOrEqual(t, planted, 6)
}
