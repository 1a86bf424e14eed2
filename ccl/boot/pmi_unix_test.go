//go:build unix

package boot

import (
	"io"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEnvPMI goes through descriptors, as Hydra gives them.
func TestEnvPMI(t *testing.T) {
	noLeaks(t)
	const n = 3
	manager := newFakePMI(n, 1024)
	var splices sync.WaitGroup
	boots := joined(t, n, func(r int) (*Boot, error) {
		fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
		if err != nil {
			return nil, err
		}
		defer syscall.Close(fds[0])
		f := os.NewFile(uintptr(fds[1]), "manager")
		outer, err := net.FileConn(f)
		f.Close()
		if err != nil {
			return nil, err
		}
		inner := manager.connect()
		splices.Go(func() { io.Copy(inner, outer); inner.Close() })
		splices.Go(func() { io.Copy(outer, inner); outer.Close() })
		return env(within(t, long), varsOf(map[string]string{
			"PMI_RANK": strconv.Itoa(r), "PMI_SIZE": strconv.Itoa(n), "PMI_FD": strconv.Itoa(fds[0]),
		}, nil))
	})
	splices.Wait()
	manager.wg.Wait()
	require.Len(t, boots[0].Secret(), 32)
	swap(t, boots)
}
