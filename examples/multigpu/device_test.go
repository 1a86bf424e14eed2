//go:build linux && cgo && nccl && rccl

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestOnDevices(t *testing.T) {
	gputest.Fake(t, "one device may not do for two ranks")
	program := filepath.Join(t.TempDir(), "multigpu")
	build := exec.Command("go", "build", "-tags", "nccl,rccl", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	b, err := build.CombinedOutput()
	require.NoError(t, err, "%s", b)
	for _, n := range []int{1, 2, 3} {
		var out, errs bytes.Buffer
		require.NoError(t, boot.Spawn(t.Context(), boot.Command{N: n, Path: program, Stdout: &out, Stderr: &errs}), errs.String())
		require.Len(t, regexp.MustCompile(`(?m)^rank \d of \d on cuda:\d \(.*FAKE.*\): 10 steps of 8 buckets averaged, all right$`).FindAllString(out.String(), -1), n, out.String())
	}
}
