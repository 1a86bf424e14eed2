package machine

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaited(t *testing.T) {
	root := t.TempDir()
	ran, waited := Waited(root)
	require.Zero(t, ran)
	require.Zero(t, waited)
	for name, text := range map[string]string{"11": "1000 200 7\n", "12": "30 4 1\n", "13": "", "14": "gone"} {
		dir := filepath.Join(root, "proc/self/task", name)
		require.NoError(t, os.MkdirAll(dir, 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "schedstat"), []byte(text), 0o600))
	}
	ran, waited = Waited(root)
	require.Equal(t, 1030*time.Nanosecond, ran)
	require.Equal(t, 204*time.Nanosecond, waited)
}
