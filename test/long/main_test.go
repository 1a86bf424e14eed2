package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// write makes a tree of files below a new directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	}
	return root
}

func parsed(t *testing.T, root string) *tree {
	t.Helper()
	m, err := read(root)
	require.NoError(t, err)
	return m
}

func TestLong(t *testing.T) {
	root := write(t, map[string]string{
		"go.mod": "module m\n",
		"a/a.go": "package a\nfunc F() {}\n",
		"a/a_test.go": "package a\nimport \"testing\"\n" +
			"func TestPlain(t *testing.T) { F() }\n" +
			"func TestItself(t *testing.T) { if testing.Short() { return } }\n" +
			"func TestThrough(t *testing.T) { middle() }\n",
		"a/b_test.go": "package a\nimport \"testing\"\nfunc middle() { _ = brief }\nvar brief = testing.Short()\n",
		"b/b_test.go": "package b\nimport \"testing\"\n" +
			"type s struct{}\nfunc (s) reduced() bool { return testing.Short() }\n" +
			"func TestMethod(t *testing.T) { s{}.reduced() }\nfunc FuzzNone(f *testing.F) {}\n",
		"c/c_test.go":          "package c\nimport \"testing\"\nfunc TestShort(t *testing.T) {}\n", // a name alone is no use of it
		"d/testdata/x_test.go": "package x\nimport \"testing\"\nfunc TestNot(t *testing.T) { testing.Short() }\n",
		"e/go.mod":             "module e\n",
		"e/e_test.go":          "package e\nimport \"testing\"\nfunc TestOther(t *testing.T) { testing.Short() }\n",
	})
	args, err := parsed(t, root).long("")
	require.NoError(t, err)
	require.Equal(t, []string{"-run", "^(TestItself|TestMethod|TestThrough)$", "--", "./a", "./b"}, args)

	for part, want := range map[string][]string{
		"0/2": {"-run", "^(TestItself|TestThrough)$", "--", "./a"},
		"1/2": {"-run", "^(TestMethod)$", "--", "./b"},
	} {
		args, err := parsed(t, root).long(part)
		require.NoError(t, err)
		require.Equal(t, want, args)
	}
	for _, part := range []string{"2/2", "x", "1"} {
		_, err = parsed(t, root).long(part)
		require.ErrorContains(t, err, "-part "+part)
	}

	_, err = parsed(t, write(t, map[string]string{"go.mod": "module m\n", "a_test.go": "package a\n"})).long("")
	require.ErrorContains(t, err, "no test")
	_, err = read(write(t, map[string]string{"go.mod": "module m\n", "a_test.go": "package"}))
	require.Error(t, err)
	_, err = read(write(t, nil))
	require.Error(t, err)
}

// A package whose TestMain asks runs all its tests again.
func TestLongMain(t *testing.T) {
	args, err := parsed(t, write(t, map[string]string{"go.mod": "module m\n", "a_test.go": "package a\nimport \"testing\"\nfunc TestMain(m *testing.M) { testing.Short() }\n"})).long("")
	require.NoError(t, err)
	require.Equal(t, []string{"-run", "^(Example.*|Fuzz.*|Test.*)$", "--", "./."}, args)
}

// Each file of this module that can be compiled for a platform that the checks know is in one line of
// test/platforms.sh: so a file with a vet error that only one platform compiles is found there.
func TestPlatforms(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: Go lists all packages for each platform")
	}
	cmd := exec.Command("bash", "test/platforms.sh", "all")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	const module, engines = "github.com/goccl/goccl/", "nccl,rccl,oneccl,mpi,xla"
	looked := map[string]bool{}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, line := range lines {
		words := strings.Fields(line)
		for _, p := range words[4:] {
			looked[strings.Join(words[:4], " ")+" "+p] = true
		}
	}
	for _, want := range []string{
		"linux amd64 0 - " + module + "ccl", "darwin arm64 0 - " + module + "ccl/boot", "windows amd64 0 - " + module + "ccl/boot",
		"linux arm64 0 - " + module + "internal/reduce", "linux amd64 0 fault " + module + "ccl/internal/inject",
		"linux amd64 1 " + engines + " " + module + "ccl/internal/native",
	} {
		require.True(t, looked[want], "%s\n%s", want, out)
	}
	require.False(t, looked["darwin arm64 0 - "+module+"internal/algo"], "it has the same files everywhere")
	require.Less(t, len(looked), 3*strings.Count(lines[0], " "))
}

// A package whose tests' programs start no goroutine has nothing to race.
func TestRaced(t *testing.T) {
	m := parsed(t, write(t, map[string]string{
		"go.mod":      "module m\n",
		"go/go.go":    "package g\nfunc F() { go func() {}() }\n",
		"at/at.go":    "package at\nimport \"m/go\"\nvar _ = g.F\n",
		"a/a_test.go": "package a\nimport _ \"m/at\"\nfunc TestA() {}\n",
		"b/b.go":      "package b\n",
		"b/b_test.go": "package b\nimport _ \"m/b\"\nfunc TestB() { var t T; t.Go() }\n",
		"c/c_test.go": "package c\nfunc TestC(t *testing.T) { t.Parallel() }\nfunc TestUnraced() {}\nfunc TestAsks() { f() }\nfunc f() { _ = race.Enabled }\n",
		"c/d_test.go": "//go:build linux && !race\n\npackage c\nfunc TestD() {}\n",
		"d/d_test.go": "//go:build race\n\npackage d\nfunc TestRace() {}\n",
	}))
	for part, want := range map[string][]string{"": {"./a", "./c", "./d"}, "0/2": {"./a", "./d"}, "1/2": {"./c"}} {
		raced, err := m.raced(part)
		require.NoError(t, err)
		require.Equal(t, want, raced)
	}
	_, err := m.raced("2/2")
	require.ErrorContains(t, err, "-part 2/2")
}

// Package ccl races; the kernels do not.
func TestRacedHere(t *testing.T) {
	raced, err := parsed(t, "../..").raced("")
	require.NoError(t, err)
	require.Contains(t, raced, "./ccl")
	require.NotContains(t, raced, "./internal/reduce")
}
