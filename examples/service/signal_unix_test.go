//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/program"
)

// SIGTERM to all ranks, as a launcher passes it on, in the middle of requests: rank 0 ends the job, those
// that were being answered are, and every rank exits with 0 and prints nothing.
func TestSignal(t *testing.T) {
	path, dir := program.Build(t), t.TempDir()
	const n = 3
	var ranks [n]*exec.Cmd
	var outs [n]*bufio.Reader
	for i := range ranks {
		cmd := exec.CommandContext(t.Context(), path, "-addr", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), fmt.Sprintf("GOCCL_RANK=%d", i), fmt.Sprintf("GOCCL_SIZE=%d", n), "GOCCL_STORE="+dir, "GOCCL_SECRET=of this test alone")
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		cmd.Stderr = cmd.Stdout
		require.NoError(t, cmd.Start())
		ranks[i], outs[i] = cmd, bufio.NewReader(out)
	}
	line, err := outs[0].ReadString('\n')
	require.NoError(t, err)
	var url string
	var size int
	_, err = fmt.Sscanf(line, "listening at %s with %d ranks", &url, &size)
	require.NoError(t, err, line)
	require.Equal(t, n, size)
	require.GreaterOrEqual(t, clients(t, url), int64(200))

	under := make(chan error, 1)
	go func() {
		for i := int64(1); ; i++ {
			status, body, err := get(t.Context(), fmt.Sprintf("%s/count?of=%d", url, i), false)
			if i == 1 {
				under <- err
			}
			if err != nil { // it listens no more
				close(under)
				return
			}
			assert.Equal(t, 200, status, body)
		}
	}()
	require.NoError(t, <-under)
	for _, cmd := range ranks {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	}
	<-under
	for i, cmd := range ranks {
		rest, err := io.ReadAll(outs[i])
		require.NoError(t, err)
		assert.Empty(t, string(rest))
		require.NoError(t, cmd.Wait(), "rank %d", i)
	}
}
