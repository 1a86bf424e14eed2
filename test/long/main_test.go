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
	args, err := long(root)
	require.NoError(t, err)
	require.Equal(t, []string{"-run", "^(TestItself|TestMethod|TestThrough)$", "--", "./a", "./b"}, args)

	_, err = long(write(t, map[string]string{"a_test.go": "package a\n"}))
	require.ErrorContains(t, err, "no test")
	_, err = long(write(t, map[string]string{"a_test.go": "package"}))
	require.Error(t, err)
}

// A package whose TestMain asks runs all its tests again.
func TestLongMain(t *testing.T) {
	args, err := long(write(t, map[string]string{"a_test.go": "package a\nimport \"testing\"\nfunc TestMain(m *testing.M) { testing.Short() }\n"}))
	require.NoError(t, err)
	require.Equal(t, []string{"-run", "^(Example.*|Fuzz.*|Test.*)$", "--", "./."}, args)
}

// Each file of this module that can be compiled for a platform that the checks know is in one line of test/platforms.sh: so a
// file with a vet error that only one platform compiles is found there.
func TestPlatforms(t *testing.T) {
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
		"linux arm64 0 - " + module + "internal/reduce", "linux amd64 0 fault " + module + "ccl/internal/fault",
		"linux amd64 1 " + engines + " " + module + "ccl/internal/native",
	} {
		require.True(t, looked[want], "%s\n%s", want, out)
	}
	require.False(t, looked["darwin arm64 0 - "+module+"internal/algo"], "it has the same files everywhere")
	require.Less(t, len(looked), 3*strings.Count(lines[0], " "))
}
