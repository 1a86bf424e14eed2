package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake makes a root directory with the given files; a text that starts with -> is a
// link.
func fake(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if to, isLink := strings.CutPrefix(text, "->"); isLink {
			require.NoError(t, os.Symlink(to, path))
		} else {
			require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		}
	}
	return root
}

func TestFingerprint(t *testing.T) {
	root := fake(t, map[string]string{
		"proc/cpuinfo":              "model name : Acme 9000\n",
		"proc/meminfo":              "MemTotal: 25165824 kB\n",
		"proc/sys/kernel/osrelease": "6.1.0\n",
		"sys/kernel/mm/transparent_hugepage/enabled":           "always [madvise] never\n",
		"sys/class/net/eth0/speed":                             "25000\n",
		"sys/class/net/veth/speed":                             "-1\n",
		"dev/nvidia0":                                          "",
		"opt/nccl/libnccl.so.2":                                "->libnccl.so.2.28.3",
		"opt/nccl/libnccl.so.2.28.3":                           "library",
		"sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
	})
	f := Fingerprint(root, []string{"LD_LIBRARY_PATH=/opt/nccl", "NCCL_ALGO=Ring", "GOCCL_RANK=3", "HF_TOKEN=planted", "NCCL_API_KEY=planted", "HOME=/root"})
	for key, want := range map[string]string{
		"cpu": "Acme 9000", "memory": "24 GiB", "kernel": "6.1.0", "huge pages": "madvise", "interface eth0": "25000 Mbit/s",
		"devices NVIDIA": "1", "library nccl": "2.28.3 (7 bytes)", "env NCCL_ALGO": "Ring", "governor": "performance",
	} {
		require.Equal(t, want, f[key], key)
	}
	for key, value := range f {
		require.NotContains(t, key+value, "planted")
		require.NotContains(t, key, "GOCCL_RANK")
		require.NotContains(t, key, "veth")
		require.NotContains(t, key, "HOME")
	}
	require.Equal(t, f, Fingerprint(root, []string{"LD_LIBRARY_PATH=/opt/nccl", "NCCL_ALGO=Ring", "GOCCL_RANK=5"}), "alike on all ranks")
}

func TestDifferences(t *testing.T) {
	require.Empty(t, Differences(nil, nil))
	require.Equal(t, []string{"cpu: A -> B", "env NCCL_ALGO: none -> Ring", "turbo off: 1 -> none"},
		Differences(map[string]string{"cpu": "A", "go": "1", "turbo off": "1"}, map[string]string{"cpu": "B", "go": "1", "env NCCL_ALGO": "Ring"}))
}

func TestChosen(t *testing.T) {
	for in, want := range map[string]string{"always [madvise] never": "madvise", "[never]": "never", "": "", "never": ""} {
		require.Equal(t, want, chosen(in))
	}
}
