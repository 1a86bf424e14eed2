//go:build (nccl || rccl) && cgo && linux

package native

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// build is the fake library without some of its functions.
func build(t *testing.T, without ...string) string {
	t.Helper()
	path, err := fake.Build(t.TempDir(), without...)
	require.NoError(t, err)
	return path
}

// stub is a library with nothing but these functions.
func stub(t *testing.T, functions ...string) string {
	t.Helper()
	source := ""
	for _, f := range functions {
		source += "int " + f + "(void) { return 0; }\n"
	}
	dir := t.TempDir()
	file, out := filepath.Join(dir, "stub.c"), filepath.Join(dir, "libstub.so")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
	text, err := exec.Command("cc", "-shared", "-fPIC", "-o", out, file).CombinedOutput()
	require.NoError(t, err, string(text))
	return out
}

func text(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "libnccl.so.2")
	require.NoError(t, os.WriteFile(file, []byte("not a library\n"), 0o600))
	return file
}

// TestWrongLibrary: what is not the library is refused before a call could crash, and the error says what it is.
func TestWrongLibrary(t *testing.T) {
	whole, lacking := fake.Library(t), build(t, "ncclBroadcast")
	vendors(t, func(t *testing.T, v *vendor) {
		for _, tc := range []struct {
			name string
			path string
			want []string
			env  []string
		}{
			{"no file", "/nowhere/libnccl.so.2", []string{"/nowhere/libnccl.so.2", "No such file", v.search.Env}, nil},
			{"a text file", text(t), []string{"file too short", v.search.Env}, nil},
			{"libc", "libc.so.6", []string{"libc.so.6 is not " + v.title, "no function ncclGetVersion"}, nil},
			{"oneCCL", stub(t, "onecclGetVersion", "ncclGetVersion"), []string{"is oneCCL, not " + v.title, "GOCCL_ONECCL_LIB"}, nil},
			{"the other of the two", stub(t, otherOf(v)...), []string{"is " + map[string]string{"nccl": "RCCL", "rccl": "NCCL"}[v.name] + ", not " + v.title}, nil},
			{"a function is missing", lacking, []string{"has no function ncclBroadcast", v.search.Advice}, nil},
			{"too old", whole, []string{v.title + " 2.8.4, which is too old", v.search.Advice}, []string{"FAKE_NCCL_VERSION", "2804"}},
			{"a fake nobody asked for", whole, []string{"is the fake library", "GOCCL_ALLOW_FAKE=1"}, []string{"GOCCL_ALLOW_FAKE", ""}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				t.Setenv(v.search.Env, tc.path)
				if tc.env != nil {
					t.Setenv(tc.env[0], tc.env[1])
				}
				w := &vendor{name: v.name, title: v.title, search: v.search, runtime: v.runtime, prefix: v.prefix,
					oldest: v.oldest, fp8: v.fp8, others: v.others}
				_, err := w.load()
				for _, want := range tc.want {
					require.ErrorContains(t, err, want)
				}
			})
		}
	})
}

// otherOf are functions by which RCCL is known, for NCCL, and NCCL, for RCCL.
func otherOf(v *vendor) []string {
	if v.name == "nccl" {
		return []string{"ncclGetVersion", "ncclAllToAllv"}
	}
	return []string{"ncclGetVersion"}
}

func TestVersion(t *testing.T) {
	for v, want := range map[int]string{2804: "2.8.4", 21003: "2.10.3", 22809: "2.28.9", 23203: "2.32.3"} {
		require.Equal(t, want, version(v))
	}
	vendors(t, func(t *testing.T, v *vendor) {
		require.Equal(t, v.title+" 2.31.2 (FAKE)", open(t, v).Version())
	})
}
