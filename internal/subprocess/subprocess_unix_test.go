//go:build unix

package subprocess

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is started apart leads a process group, and lives as long as the function that Locked runs.
func TestApart(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = Apart(syscall.SIGKILL)
	failed := errors.New("it failed")
	require.Equal(t, failed, Locked(func() error {
		require.NoError(t, cmd.Start())
		group, err := syscall.Getpgid(cmd.Process.Pid)
		require.NoError(t, err)
		require.Equal(t, cmd.Process.Pid, group)
		require.NoError(t, syscall.Kill(-group, syscall.SIGTERM))
		cmd.Wait()
		return failed
	}))
	require.Equal(t, syscall.SIGTERM, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
}
