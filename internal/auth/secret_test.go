package auth

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestFromEnv(t *testing.T) {
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
		require.NoError(t, os.Chmod(path, mode))
		return path
	}
	for _, tc := range []struct {
		name   string
		vars   map[string]string
		want   string // "": nil
		errors []string
		posix  bool // the case depends on permission bits
	}{
		{name: "none"},
		{name: "blank", vars: map[string]string{SecretVar: " \n"}},
		{name: "text", vars: map[string]string{SecretVar: "open sesame\n"}, want: "open sesame"},
		{name: "hex", vars: map[string]string{SecretVar: "00ffAB"}, want: "\x00\xff\xab"},
		{name: "odd hex is text", vars: map[string]string{SecretVar: "00f"}, want: "00f"},
		{name: "file", vars: map[string]string{SecretFileVar: file("text", "open\n", 0o600)}, want: "open"},
		{name: "read-only file", vars: map[string]string{SecretFileVar: file("ro", "0102", 0o400)}, want: "\x01\x02"},
		{name: "file before value", vars: map[string]string{SecretFileVar: file("both", "file", 0o600), SecretVar: "value"}, want: "file"},
		{name: "group may read", vars: map[string]string{SecretFileVar: file("group", "x", 0o640)}, posix: true,
			errors: []string{"GOCCL_SECRET_FILE", "has mode 0640", "chmod 600 " + filepath.Join(dir, "group")}},
		{name: "others may read", vars: map[string]string{SecretFileVar: file("other", "x", 0o604)}, posix: true,
			errors: []string{"chmod 600"}},
		{name: "missing", vars: map[string]string{SecretFileVar: filepath.Join(dir, "missing")},
			errors: []string{"GOCCL_SECRET_FILE", filepath.Join(dir, "missing")}},
		{name: "empty", vars: map[string]string{SecretFileVar: file("empty", " \n", 0o600)}, errors: []string{"is empty"}},
		{name: "too long", vars: map[string]string{SecretFileVar: file("long", strings.Repeat("x", 4097), 0o600)}, errors: []string{"at most 4096 bytes"}},
		{name: "directory", vars: map[string]string{SecretFileVar: dir}, errors: []string{"is not a regular file"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.posix && runtime.GOOS == "windows" {
				t.Skip("no permission bits here")
			}
			got, err := FromEnv(env(tc.vars))
			if tc.errors != nil {
				require.Error(t, err)
				for _, text := range tc.errors {
					require.ErrorContains(t, err, text)
				}
				require.Nil(t, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.want, string(got))
			require.Equal(t, tc.want == "", got == nil)
		})
	}
}

func TestNewSecret(t *testing.T) {
	a, b := NewSecret(), NewSecret()
	require.Len(t, a, 32)
	require.NotEqual(t, a, b)
	// As Spawn hands it on.
	got, err := FromEnv(env(map[string]string{SecretVar: hex.EncodeToString(a)}))
	require.NoError(t, err)
	require.Equal(t, a, got)
}
