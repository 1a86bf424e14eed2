package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// tree writes files and returns their directory.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A release is refused where one of the places that have its number has another.
func TestVersion(t *testing.T) {
	const mod = "module x\n\nrequire (\n\tgithub.com/goccl/goccl v1.2.3\n)\n"
	good := map[string]string{
		"CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- `Next`\n\n## [1.2.3] - 2026-01-02\n\n- `New`\n\n## [1.2.2] - 2026-01-01\n\n- `Old`\n",
		"ccl/comm.go":  "package ccl\n\nconst Version = \"1.2.3\"\n",
	}
	for _, dir := range nested {
		good[dir+"/go.mod"] = mod
	}
	v, err := readVersion(tree(t, good))
	if err != nil || v.number != "1.2.3" || strings.TrimSpace(v.changes) != "- `New`" {
		t.Fatalf("got %+v, %v", v, err)
	}
	for says, number := range map[string]string{"1.2.3": "1.2.3", "1.2.4-dev": "1.2.3", "1.3.0-dev": "1.2.3", "1.2.3-dev": "", "1.2.2-dev": "", "1.3.0": ""} {
		good["ccl/comm.go"] = "package ccl\n\nconst Version = \"" + says + "\"\n"
		v, err := readVersion(tree(t, good))
		if err == nil && (v.number != number || v.says != says || strings.Contains(v.changes, "`Next`") != strings.HasSuffix(says, "-dev")) || err != nil && number != "" {
			t.Errorf("%s: got %+v, %v", says, v, err)
		}
	}
	good["ccl/comm.go"] = "package ccl\n\nconst Version = \"1.2.3\"\n"
	for file, text := range map[string]string{
		"CHANGELOG.md":      "# Changelog\n\n## [Unreleased]\n",
		"ccl/comm.go":       "package ccl\n\nconst Version = \"1.2.2\"\n",
		"interop/cu/go.mod": "module x\n\nrequire github.com/goccl/goccl v0.0.0\n",
	} {
		bad := map[string]string{}
		for k, v := range good {
			bad[k] = v
		}
		bad[file] = text
		if _, err := readVersion(tree(t, bad)); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %q: got %v", file, text, err)
		}
	}
}

// What breaks programs is named in the changelog.
func TestNamed(t *testing.T) {
	lines := changes("Incompatible changes:\n- ./ccl.(*Comm).Split: changed from func() to func(int)\n- ./mpi.Use: removed\n- ./ccl.Version: value changed\n")
	if len(lines) != 2 {
		t.Fatalf("got %q", lines)
	}
	if err := allNamed(lines, "- `Comm.Split` takes a number.\n- `mpi.Use` is gone.\n"); err != nil {
		t.Error(err)
	}
	err := allNamed(lines, "- `Comm.Splits` and Use have changed.\n")
	if err == nil || !strings.Contains(err.Error(), "Split") || !strings.Contains(err.Error(), "Use") {
		t.Errorf("got %v", err)
	}
}

// The example is the first whole program.
func TestExample(t *testing.T) {
	root := tree(t, map[string]string{"README.md": "```go\nx := 1\n```\n\n```go\npackage main\n\nfunc main() {}\n```\n", "empty.md": "nothing"})
	got, err := example(filepath.Join(root, "README.md"))
	if err != nil || got != "package main\n\nfunc main() {}\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := example(filepath.Join(root, "empty.md")); err == nil {
		t.Error("no error for a document without a program")
	}
}
