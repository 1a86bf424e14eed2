//go:build nccl && cgo && linux

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// TestWayOfQueued counts the way of a Queue.AllReduce over NCCL, which is the fake library here.
func TestWayOfQueued(t *testing.T) {
	fake.Use(t)
	program, dir := build(t, "-tags", "nccl"), t.TempDir()
	cmd := exec.Command(program, "queued", dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	require.NoError(t, cmd.Run())
	shortest(t, readWays(t, dir), way.goesOn).check(t, most{26, 15, 7})
}
