//go:build !linux

package cpu

import (
	"errors"
	"fmt"
	"net"
	"runtime"
)

// canShare says that processes of one host can share memory here. They cannot:
// there is no memfd, so they use TCP, as between hosts.
const canShare = false

var errNoSharing = errors.New("processes cannot share memory on " + runtime.GOOS)

func newSharedHost() (*host, error)                { return nil, errNoSharing }
func openHost(int) (*host, error)                  { return nil, errNoSharing }
func reserve(int, uint64, uint64) error            { return errNoSharing }
func release(int, uint64, uint64) bool             { return false }
func mapRegion(int, uint64, int) ([]byte, error)   { return nil, errNoSharing }
func unmap([]byte)                                 {}
func closeFD(int)                                  {}
func listenHost(string) (*net.UnixListener, error) { return nil, errNoSharing }
func sendFD(*net.UnixConn, int, []byte) error      { return errNoSharing }
func recvFD(*net.UnixConn, []byte) (int, error)    { return -1, errNoSharing }
func sameUser(*net.UnixConn) error                 { return errNoSharing }

// mapSlice is n bytes for the ranks of this process alone.
func mapSlice(_ int, _ uint64, n int) ([]byte, error) {
	if n > 1<<40 {
		return nil, fmt.Errorf("there is no room for %d KiB", n>>10)
	}
	return aligned(n), nil
}

func unmapAll([]byte, int) {} // the collector's

func (h *host) empty(*memory)      {}
func (m *memory) replace(int) bool { return false }

func hasRoom(uint64) error { return nil }
func hostIdentity() string { return "" }
