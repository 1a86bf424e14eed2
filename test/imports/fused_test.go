package imports_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
)

var (
	fused = regexp.MustCompile(`(?m)^\s+0x\S+ \d+ \((\S+)\)\s+FN?M(?:ADD|SUB)`)
	// apart is what no rank compares with another's: pictures, templates of chats, and the arithmetic of an example's model.
	apart = regexp.MustCompile(`/train/history/\w+\.go:|/train/data/chat/internal/python/|/internal/gpt/`)
)

// On arm64 the compiler makes one instruction of a product and a sum, which rounds once, unless the product is converted
// (float64(a*b) + c). Ranks of one job may be of different machines, and a result is not to depend on the machine.
func TestNothingIsFused(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it compiles for arm64")
	}
	cache.Whole()
	cmd := exec.Command("go", "build", "-gcflags=-S", "./train/...", "./ccl/...", "./internal/...", "./examples/internal/mat")
	cmd.Dir, cmd.Env = "../..", append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), "TEXT", "nothing is listed")
	var lines []string
	for _, m := range fused.FindAllStringSubmatch(string(out), -1) {
		if !apart.MatchString(m[1]) {
			lines = append(lines, m[1])
		}
	}
	require.Empty(t, lines, "a product and a sum of one instruction:\n%s", strings.Join(lines, "\n"))
}

// What the expression is to find, it finds.
func TestFusedIsSeen(t *testing.T) {
	const line = "\t0x0030 00048 (/a/b.go:7)\tFMADDD\tF0, F1, F2, F3\n\t0x0034 00052 (/a/b.go:8)\tFMULD\tF0, F1, F2\n"
	m := fused.FindAllStringSubmatch(line, -1)
	require.Len(t, m, 1)
	require.Equal(t, "/a/b.go:7", m[0][1])
}
