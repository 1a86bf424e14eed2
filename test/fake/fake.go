// Package fake builds libgocclfake.so, which is NCCL, RCCL and the CUDA and HIP runtimes on host memory, in
// one file, across the processes of a machine: README.md says what it does and how it is made to fail. All
// four variables name it, and nothing else finds it.
package fake

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
)

const library = "libgocclfake.so"

// inputs are what the library is made of beside test/fake/lib, from the module's root.
var inputs = []string{"test/fake/build.sh", "include/gccl.h", "include/gcu.h", "include/gdev.h",
	"train/device/kernels.cu", "gpu/testdata/kernels.cu"}

// Build compiles the library into dir, with all functions but those in without, and returns its path.
func Build(dir string, without ...string) (string, error) {
	root, err := module()
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, library)
	args := []string{out}
	if len(without) > 0 {
		script := filepath.Join(dir, "without.map")
		if err := os.WriteFile(script, []byte("{ local: "+strings.Join(without, "; ")+"; };\n"), 0o600); err != nil {
			return "", err
		}
		args = append(args, "-Wl,--version-script="+script)
	}
	cmd := exec.Command(filepath.Join(root, "test/fake/build.sh"), args...)
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, text)
	}
	return out, nil
}

// Library is Path for a test. One that has no C compiler is skipped.
func Library(tb testing.TB) string {
	tb.Helper()
	if _, err := exec.LookPath("cc"); err != nil && os.Getenv("CC") == "" {
		tb.Skip("no C compiler (Debian: apt-get install gcc libc6-dev)")
	}
	path, err := Path()
	if err != nil {
		tb.Fatal("the fake library: ", err)
	}
	return path
}

// Path is the library, compiled once for what its sources are now.
func Path() (string, error) {
	key, err := hash()
	if err != nil {
		return "", err
	}
	dir, err := cache.Dir(filepath.Join("fake", key), func(dir string) error {
		_, err := Build(dir)
		return err
	})
	return filepath.Join(dir, library), err
}

// Env is what a program finds the library by.
func Env(path string) []string {
	return []string{"GOCCL_ALLOW_FAKE=1", "GOCCL_NCCL_LIB=" + path, "GOCCL_RCCL_LIB=" + path, "GOCCL_CUDART_LIB=" + path,
		"GOCCL_HIP_LIB=" + path}
}

// Use lets this process, and those it starts, find the library. What it has loaded before stays loaded.
func Use(tb testing.TB) {
	tb.Helper()
	for _, v := range Env(Library(tb)) {
		name, value, _ := strings.Cut(v, "=")
		tb.Setenv(name, value)
	}
}

func hash() (string, error) {
	h := sha256.New()
	h.Write([]byte(os.Getenv("CC")))
	root, err := module()
	if err != nil {
		return "", err
	}
	files := os.DirFS(root)
	names, err := fs.Glob(files, "test/fake/lib/[^._]*")
	if err != nil {
		return "", err
	}
	for _, name := range append(names, inputs...) {
		b, err := fs.ReadFile(files, name)
		if err != nil {
			return "", err
		}
		h.Write(b)
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// module is the directory of go.mod, in or above the working directory, which is a package's in tests.
func module() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "test/fake/build.sh")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("test/fake is not in a directory above this one")
		}
	}
	return "", err
}
