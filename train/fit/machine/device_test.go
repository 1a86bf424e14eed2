//go:build xla && nccl && cgo && linux

package machine

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/test/fake"
)

// withFake reports whether this process has the fake runtime. If not it runs this test in one that has: a process looks for a runtime
// once.
func withFake(t *testing.T) bool {
	t.Helper()
	const child = "FIT_TEST_FAKE"
	if os.Getenv(child) != "" {
		return true
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), fake.Env(fake.Library(t))...), "FAKE_NCCL_SHARED_DEVICES=1", child+"=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}

// The device is the Comm's, also where the rank has another number than when it got it, as after Shrink and Grow. XLA sees no other.
func TestDeviceIsKept(t *testing.T) {
	if !withFake(t) {
		return
	}
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		m, options := &Machine{world: ccltest.Split(t, c, min(c.Rank(), 1), 0)}, map[string]any{}
		require.NoError(t, m.takeDevice(options))
		require.Equal(t, c.Rank(), m.device.Index())
		require.Equal(t, map[string]any{"visible_devices": []int64{int64(c.Rank())}}, options)
	}, ccltest.With(ccl.Options{Backend: "nccl"}))
}
