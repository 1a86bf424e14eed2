//go:build !linux

package shm

import (
	"errors"
	"fmt"
	"net"
	"runtime"
)

// CanShare says that processes of one host can share memory here. They cannot:
// there is no memfd, so they use TCP, as between hosts.
const CanShare = false

var errNoSharing = errors.New("processes cannot share memory on " + runtime.GOOS)

func NewShared() (*Host, error)                         { return nil, errNoSharing }
func Open(int) (*Host, error)                           { return nil, errNoSharing }
func (h *Host) NewSlices() error                        { return errNoSharing }
func (h *Host) OpenSlices(int, *Host) error             { return errNoSharing }
func reserve(int, uint64, uint64) error                 { return errNoSharing }
func release(int, uint64, uint64) bool                  { return false }
func mapRegion(int, uint64, int) ([]byte, error)        { return nil, errNoSharing }
func unmap([]byte)                                      {}
func CloseFD(int)                                       {}
func Listen(string) (*net.UnixListener, error)          { return nil, errNoSharing }
func SendFDs(*net.UnixConn, []byte, ...int) error       { return errNoSharing }
func RecvFDs(*net.UnixConn, []byte, int) ([]int, error) { return nil, errNoSharing }

// mapSlice is n bytes for the ranks of this process alone.
func mapSlice(_ int, _ uint64, n int) ([]byte, error) {
	if n > 1<<40 {
		return nil, fmt.Errorf("there is no room for %d KiB", n>>10)
	}
	return Aligned(n), nil
}

func unmapAll([]byte, int) {} // the collector's

func (h *Host) empty(*memory)      {}
func (m *memory) replace(int) bool { return false }

func HasRoom(uint64) error                   { return nil }
func HostIdentity() string                   { return "" }
func ReadMemory(int32, []byte, uint64) error { return errors.ErrUnsupported } // nor do they read each other's

// HugePages is empty: see ReadMemory.
type HugePages struct{}

func (*HugePages) Add([]byte, HugeAfter) {}
