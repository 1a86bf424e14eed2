package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
)

func TestHello(t *testing.T) {
	program := filepath.Join(t.TempDir(), "hello.exe")
	b, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", b)
	for _, n := range []int{1, 2, 4} {
		var out, errs bytes.Buffer
		require.NoError(t, boot.Spawn(t.Context(), boot.Command{N: n, Path: program, Stdout: &out, Stderr: &errs}), errs.String())
		require.Len(t, regexp.MustCompile(`(?m)^rank \d of \d, on \S+: number \d of the \d there$`).FindAllString(out.String(), -1), n)
		require.Contains(t, out.String(), []string{1: "the ranks add up to 0\n", 2: "the ranks add up to 1\n", 4: "the ranks add up to 6\n"}[n])
		require.Empty(t, errs.String())
	}
}
