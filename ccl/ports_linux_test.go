package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// listening are the TCP ports at which this process listens.
func listening(t testing.TB) (ports []int) {
	own := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	require.NoError(t, err)
	for _, fd := range fds {
		name, _ := os.Readlink(fd)
		own[name] = true
	}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		text, err := os.ReadFile(table)
		if err != nil {
			continue // no IPv6
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line) // number, local, remote, state, ..., inode in the tenth place
			if len(f) < 10 || f[3] != "0A" || !own["socket:["+f[9]+"]"] {
				continue
			}
			port, err := strconv.ParseUint(f[1][strings.LastIndex(f[1], ":")+1:], 16, 16)
			require.NoError(t, err)
			ports = append(ports, int(port))
		}
	}
	return ports
}

// TestPortsProcess is not a test of its own: it is what the processes of TestPortsOfAJob run. A spare takes
// the place of number 1, which is killed, and is started again to be a spare.
func TestPortsProcess(t *testing.T) {
	if os.Getenv("CCL_TEST_PORTS") == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), long)
	defer cancel()
	dir, ports, seen := os.Getenv("CCL_TEST_DIR"), environ.Ports.Get(), 0
	c, err := ccl.Join(ctx, nil)
	if errors.Is(err, ccl.ErrUnused) {
		return
	}
	require.NoError(t, err)
	c = grown(ctx, t, c, 3, func(c *ccl.Comm) bool {
		for _, p := range listening(t) {
			seen++
			assert.True(t, ports.From <= p && p <= ports.To, "listens at %d, not in %v", p, ports)
		}
		killed := files(dir, "killed")
		if c.Size() < 3 || c.Waiting() < 1 {
			return false
		}
		if killed == 0 && c.Rank() == 1 {
			assert.NoError(t, os.WriteFile(filepath.Join(dir, "killed"), nil, 0o600))
			killSelf()
		}
		return killed == 1 && c.Rank() == 0
	})
	defer c.Close()
	assert.Positive(t, seen)
	fmt.Printf("number %d of %v\n", c.Rank(), members(t, c, c.Rank()))
}

// All that a job listens at, also where it grows and has spares, is of the range that GOCCL_PORTS names; and
// so many ports are enough.
func TestPortsOfAJob(t *testing.T) {
	const size, spares = 3, 1
	for from := 15000; ; from += 100 {
		require.Less(t, from, 30000, "no range of ports is free")
		n := 2*(size+spares) + 2 // with rank 0's, and the hall's
		if !allFree(from, n) {
			continue
		}
		text, err := growProcesses(t, "TestPortsProcess", size, spares, 2, "CCL_TEST_PORTS=1", fmt.Sprintf("GOCCL_PORTS=%d-%d", from, from+n-1))
		var e *boot.ExitError
		require.ErrorAs(t, err, &e, text)
		require.Equal(t, 1, e.Restarted, text)
		for r := range size {
			require.Contains(t, text, fmt.Sprintf("number %d of [0 1 2]", r), text)
		}
		return
	}
}

// allFree reports whether n ports in a row are free.
func allFree(from, n int) bool {
	for i := range n {
		l, err := net.Listen("tcp", ":"+strconv.Itoa(from+i))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}
