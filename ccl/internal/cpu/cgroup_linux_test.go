package cpu

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRoomInCgroups(t *testing.T) {
	root := t.TempDir()
	write := func(dir string, files map[string]string) {
		require.NoError(t, os.MkdirAll(filepath.Join(root, dir), 0o755))
		for name, text := range files {
			require.NoError(t, os.WriteFile(filepath.Join(root, dir, name), []byte(text), 0o644))
		}
	}
	write("a", map[string]string{"memory.max": "1000\n", "memory.current": "400\n"})
	write("a/b", map[string]string{"memory.max": "max\n", "memory.current": "100\n"})
	write("a/b/c", map[string]string{"memory.max": "300\n", "memory.current": "200\n", "memory.stat": "anon 9\ninactive_file 30\nactive_file 20\nshmem 7\n"})
	write("full", map[string]string{"memory.max": "300\n", "memory.current": "310\n"})
	for _, tc := range []struct {
		self string
		room uint64
	}{
		{"0::/a/b/c\n", 150},
		{"0::/a/b\n", 600},
		{"0::/full\n", 0},
		{"0::/\n", math.MaxUint64},
		{"4:memory:/a\n", math.MaxUint64}, // of version 1
		{"0::/../..\n", math.MaxUint64},
	} {
		require.Equal(t, tc.room, roomIn(limitedGroups(root, tc.self)), tc.self)
	}
}
