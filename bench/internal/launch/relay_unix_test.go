//go:build unix

package launch

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A launcher hears what somebody asks this process for.
func TestRelay(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "trap 'exit 7' USR2; echo ready; while :; do sleep 0.01; done")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	stop := relay(cmd.Process)
	defer stop()
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGUSR2))
	var exit *exec.ExitError
	require.True(t, errors.As(cmd.Wait(), &exit))
	require.Equal(t, 7, exit.ExitCode())
}
