package cu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var driverCall = regexp.MustCompile(`\b(cu[A-Z]\w+)\s*\(`)

// TestBuild compiles and vets the package against CUDA 12's cuda.h and a libcuda of empty functions, on any machine. Its
// tests run where a GPU is: go test -tags cu.
func TestBuild(t *testing.T) {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("hardware: CUDA's headers are fetched for linux/amd64")
	}
	for _, need := range []struct{ command, packages string }{{"python3", "python3-pip"}, {"cc", "gcc libc6-dev"}} {
		if _, err := exec.LookPath(need.command); err != nil {
			t.Skipf("no %s (Debian: apt-get install %s)", need.command, need.packages)
		}
	}
	var stderr strings.Builder
	fetch := exec.Command("../../test/vendor/cudart/fetch.sh", "cuda-12.9.79")
	fetch.Stderr = &stderr
	out, err := fetch.Output()
	require.NoError(t, err, &stderr)
	include := filepath.Join(strings.TrimSpace(string(out)), "include")

	// Every function of the header, under the names that the library has them by.
	cc := exec.Command("cc", "-E", "-P", "-I"+include, "-include", "cuda.h", "-x", "c", os.DevNull)
	declared, err := cc.Output()
	require.NoError(t, err)
	var stub strings.Builder
	seen := map[string]bool{}
	for _, m := range driverCall.FindAllStringSubmatch(string(declared), -1) {
		if !seen[m[1]] {
			seen[m[1]] = true
			stub.WriteString("int " + m[1] + "(void) { return 100; }\n") // no device
		}
	}
	require.Greater(t, len(seen), 300, "functions of cuda.h")
	dir := t.TempDir()
	source := filepath.Join(dir, "stub.c")
	require.NoError(t, os.WriteFile(source, []byte(stub.String()), 0o644))
	said, err := exec.Command("cc", "-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o", filepath.Join(dir, "libcuda.so"), source).CombinedOutput()
	require.NoError(t, err, string(said))

	binary := filepath.Join(dir, "cu.test")
	for _, args := range [][]string{
		{"vet", "-tags", "cu", "."},
		{"test", "-tags", "cu", "-c", "-o", binary, "."},
	} {
		os.Getenv("GOCCL_TEST_TREE") // what it builds, go test does not see: see Whole of test/cache
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=-w -I"+include, "CGO_LDFLAGS=-L"+dir)
		said, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s: %s", strings.Join(args, " "), said)
	}
	require.FileExists(t, binary)
}
