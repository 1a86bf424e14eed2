//go:build unix

package elastic_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/boot"
)

// The one rank that has the state is stopped while two newcomers come in, for longer than PeerTimeout, and goes on.
// Whatever they have got by then, all are in the job again, and no process has ended.
func TestStopped(t *testing.T) {
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	defer hall.Close()
	dir := t.TempDir()
	p := &peers{t: t, returns: true, env: append(os.Environ(), "ELASTIC_TEST_DIR="+dir, "ELASTIC_TEST_PEER_TIMEOUT=1s", "ELASTIC_TEST_SIZE=8000000",
		"GOCCL_HALL="+hall.Addr(), "GOCCL_LOG=quiet", "GORACE=atexit_sleep_ms=0")}
	first := p.start()
	p.until(1)
	for range 2 {
		p.start()
	}
	at := rand.N(400 * time.Millisecond)
	t.Log("stopped after", at)
	time.Sleep(at)
	require.NoError(t, first.Process.Signal(syscall.SIGSTOP))
	time.Sleep(2500 * time.Millisecond)
	require.NoError(t, first.Process.Signal(syscall.SIGCONT))
	p.until(3)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stop"), nil, 0o600))
	for i, one := range p.all {
		require.NoError(t, <-one.ended, fmt.Sprint("process ", i))
	}
}
