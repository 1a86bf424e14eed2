package plane

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// board is what the processes of a host tell each other at the beginning of its memory.
type board struct {
	world  atomic.Uint64 // the region of the job's first Comm
	pulses atomic.Uint64 // the table of pulses
	whole  atomic.Uint64 // the most bytes of an AllReduce of two ranks that lie in the slots
	_      [104]byte
	log    event.Log
	status status.Log
}

var _ [shm.HeaderBytes - unsafe.Sizeof(board{})]byte // it fits

// boardOf returns the board of h.
func boardOf(h *shm.Host) *board { return (*board)(h.Header()) }

// PrivateHost makes the memory of a host whose ranks all live in this process.
func PrivateHost() *shm.Host {
	h := shm.NewPrivate(int(unsafe.Sizeof(board{})))
	boardOf(h).init()
	return h
}

// sharedHost makes the memory of a host with several processes.
func sharedHost() (*shm.Host, error) {
	h, err := shm.NewShared()
	if err != nil {
		return nil, shareError(err)
	}
	boardOf(h).init()
	return h, nil
}

// init is what the first process of a host decides for all.
func (b *board) init() { b.whole.Store(uint64(tuning.CPU.WholeTwo)) }
