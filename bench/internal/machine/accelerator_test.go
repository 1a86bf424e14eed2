package machine

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// fake makes a root directory with the given files.
func fake(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

func TestHint(t *testing.T) {
	const tail = ", but no engine for it is compiled in; this is the CPU engine. Try: go run -tags "
	intelNode := map[string]string{"dev/dri/renderD128": "", "sys/class/drm/renderD128/device/vendor": "0x8086\n"}
	for _, tc := range []struct {
		name     string
		files    map[string]string
		compiled []string
		want     string
	}{
		{"none", nil, nil, ""},
		{"nvidia", map[string]string{"dev/nvidia0": ""}, nil,
			"# There is an accelerator, NVIDIA (/dev/nvidia0)" + tail + "nccl ./bench -op allreduce"},
		{"amd", map[string]string{"dev/kfd": ""}, nil,
			"# There is an accelerator, AMD (/dev/kfd)" + tail + "rccl ./bench -op allreduce"},
		{"intel", intelNode, nil,
			"# There is an accelerator, Intel (/dev/dri/renderD128)" + tail + "oneccl ./bench -op allreduce"},
		{"another vendor's render node", map[string]string{"dev/dri/renderD128": "", "sys/class/drm/renderD128/device/vendor": "0x10de\n"}, nil, ""},
		{"a render node without a vendor", map[string]string{"dev/dri/renderD128": ""}, nil, ""},
		{"two kinds", map[string]string{"dev/nvidia0": "", "dev/kfd": ""}, nil,
			"# There is an accelerator, NVIDIA (/dev/nvidia0) and AMD (/dev/kfd)" + tail + "nccl,rccl ./bench -op allreduce"},
		{"compiled in", map[string]string{"dev/nvidia0": ""}, []string{"nccl"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, Hint(fake(t, tc.files), tc.compiled, []string{"-op", "allreduce"}))
		})
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{"-b": "-b", "a,b=c": "a,b=c", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		require.Equal(t, want, Quote(in))
	}
}
