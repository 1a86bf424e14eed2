package auth

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
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
		{name: "blank", vars: map[string]string{environ.SecretText.Name: " \n"}},
		{name: "text", vars: map[string]string{environ.SecretText.Name: "open sesame, said he\n"}, want: "open sesame, said he"},
		{name: "hex", vars: map[string]string{environ.SecretText.Name: strings.Repeat("00ffABcd", 4)}, want: strings.Repeat("\x00\xff\xab\xcd", 4)},
		{name: "odd hex is text", vars: map[string]string{environ.SecretText.Name: strings.Repeat("00f", 7)}, want: strings.Repeat("00f", 7)},
		{name: "file", vars: map[string]string{environ.SecretFile.Name: file("text", "open sesame, open\n", 0o600)}, want: "open sesame, open"},
		{name: "read-only file", vars: map[string]string{environ.SecretFile.Name: file("ro", strings.Repeat("0102", 8), 0o400)}, want: strings.Repeat("\x01\x02", 8)},
		{name: "file before value", vars: map[string]string{environ.SecretFile.Name: file("both", "what the file holds", 0o600), environ.SecretText.Name: "a"}, want: "what the file holds"},
		{name: "15 bytes", vars: map[string]string{environ.SecretText.Name: strings.Repeat("x", 15)}, errors: []string{"GOCCL_SECRET: it holds 15 bytes, and fewer than 16 can be guessed", "openssl rand"}},
		{name: "letters that are hex digits", vars: map[string]string{environ.SecretText.Name: strings.Repeat("a", 20)},
			errors: []string{"GOCCL_SECRET: it holds 10 bytes (20 hex digits, which stand for bytes), and fewer than 16 can be guessed"}},
		{name: "15 bytes of hex", vars: map[string]string{environ.SecretText.Name: strings.Repeat("0f", 15)}, errors: []string{"holds 15 bytes"}},
		{name: "short file", vars: map[string]string{environ.SecretFile.Name: file("short", "a", 0o600)}, errors: []string{"GOCCL_SECRET_FILE: " + filepath.Join(dir, "short") + " holds 1 bytes"}},
		{name: "placeholder", vars: map[string]string{environ.SecretText.Name: "REPLACE-ME"}, errors: []string{"GOCCL_SECRET: it still holds the placeholder REPLACE-ME"}},
		{name: "long placeholder", vars: map[string]string{environ.SecretFile.Name: file("placeholder", "replace-me-with-a-secret", 0o600)}, errors: []string{"still holds the placeholder"}},
		{name: "group may read", vars: map[string]string{environ.SecretFile.Name: file("group", "x", 0o640)}, posix: true,
			errors: []string{"GOCCL_SECRET_FILE", "has mode 0640", "chmod 600 " + filepath.Join(dir, "group")}},
		{name: "others may read", vars: map[string]string{environ.SecretFile.Name: file("other", "x", 0o604)}, posix: true,
			errors: []string{"chmod 600"}},
		{name: "missing", vars: map[string]string{environ.SecretFile.Name: filepath.Join(dir, "missing")},
			errors: []string{"GOCCL_SECRET_FILE", filepath.Join(dir, "missing")}},
		{name: "empty", vars: map[string]string{environ.SecretFile.Name: file("empty", " \n", 0o600)}, errors: []string{"is empty"}},
		{name: "too long", vars: map[string]string{environ.SecretFile.Name: file("long", strings.Repeat("x", 4097), 0o600)}, errors: []string{"it has 4097 bytes, more than the 4096 that are read"}},
		{name: "directory", vars: map[string]string{environ.SecretFile.Name: dir}, errors: []string{"is not a regular file"}},
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
	got, err := FromEnv(env(map[string]string{environ.SecretText.Name: hex.EncodeToString(a)}))
	require.NoError(t, err)
	require.Equal(t, a, got)
}

func TestProvide(t *testing.T) {
	good := environ.SecretText.Set("open sesame, open")
	for _, tc := range []struct {
		env  []string
		made bool
		want []string // without the one that is made
		err  string
	}{
		{nil, true, nil, ""},
		{[]string{"A=1", "GOCCL_SECRET=", "GOCCL_SECRET_FILE="}, true, []string{"A=1"}, ""},
		{[]string{"GOCCL_SECRETS=1"}, true, []string{"GOCCL_SECRETS=1"}, ""},
		{[]string{good, "A=1"}, false, []string{good, "A=1"}, ""},
		{[]string{good, "GOCCL_SECRET= "}, true, []string{}, ""}, // the last counts
		{[]string{"GOCCL_SECRET=a"}, false, []string{"GOCCL_SECRET=a"}, "GOCCL_SECRET: it holds 1 bytes"},
	} {
		got, err := Provide(tc.env)
		if tc.err != "" {
			require.ErrorContains(t, err, tc.err)
		} else {
			require.NoError(t, err)
		}
		if tc.made {
			require.Regexp(t, "^GOCCL_SECRET=[0-9a-f]{64}$", got[len(got)-1])
			got = got[:len(got)-1]
		}
		require.ElementsMatch(t, tc.want, got)
	}
	for want, env := range map[string][]string{
		"":                  {"A=1", good},
		"GOCCL_SECRET":      {good, "GOCCL_SECRET=\n"},
		"GOCCL_SECRET_FILE": {"GOCCL_SECRET_FILE="},
	} {
		require.Equal(t, want, Blank(env))
	}
}

// What a variable or a file holds for a secret is never shorter than may be, and never what a manifest has in its place.
func FuzzSecret(f *testing.F) {
	f.Add([]byte("open sesame, open"))
	f.Add([]byte(" \n00"))
	f.Add([]byte("REPLACE-ME REPLACE-ME"))
	f.Add([]byte("0123456789abcdef0123456789abcdef"))
	f.Fuzz(func(t *testing.T, text []byte) {
		secret, err := FromEnv(env(map[string]string{environ.SecretText.Name: string(text)}))
		if secret != nil && (err != nil || len(secret) < minSecret || len(secret) > len(text)) {
			t.Fatalf("%q, %v", secret, err)
		}
	})
}
