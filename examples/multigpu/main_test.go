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

func TestMultiGPU(t *testing.T) {
	program := filepath.Join(t.TempDir(), "multigpu.exe")
	b, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", b)
	for _, n := range []int{1, 2, 3} {
		var out, errs bytes.Buffer
		require.NoError(t, boot.Spawn(t.Context(), boot.Command{N: n, Path: program, Stdout: &out, Stderr: &errs}), errs.String())
		require.Len(t, regexp.MustCompile(`(?m)^rank \d of \d on the CPU: 10 steps of 8 buckets averaged, all right$`).FindAllString(out.String(), -1), n)
		require.Empty(t, errs.String())
	}
}
