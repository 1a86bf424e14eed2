package watch

import (
	"errors"
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Board is what the processes of a host tell each other at the beginning of its memory.
type Board struct {
	world  atomic.Uint64 // the region of the job's first Comm
	pulses atomic.Uint64 // the table of pulses
	number uint64        // of the job on this host, by chance; does not change, as layout
	layout tuning.Layout
	Told   ReportedLosses
	_      [80 - unsafe.Sizeof(ReportedLosses{})]byte
	Log    event.Log
	Status status.Log
}

var _ [shm.HeaderBytes - unsafe.Sizeof(Board{})]byte // it fits

// BoardOf returns the board of h.
func BoardOf(h *shm.Host) *Board { return (*Board)(h.Header()) }

// PrivateHost makes the memory of a host whose ranks all live in this process.
func PrivateHost() *shm.Host {
	h := shm.NewPrivate(int(unsafe.Sizeof(Board{})))
	BoardOf(h).init()
	return h
}

// sharedHost makes the memory of a host with several processes. Its slices lie with those of from, unless that is nil.
func sharedHost(from *shm.Host) (*shm.Host, error) {
	h, err := shm.NewShared()
	if err != nil {
		return nil, ShareError(err)
	}
	if !h.ShareSlices(from) {
		if err := h.NewSlices(); err != nil {
			h.Close()
			return nil, ShareError(err)
		}
	}
	BoardOf(h).init()
	return h, nil
}

// init is what the first process of a host decides for all.
func (b *Board) init() { b.layout, b.number = machine.CPU.Layout, proc.Number() }

// LayoutOf is where data lie in the memory of h.
func LayoutOf(h *shm.Host) tuning.Layout { return BoardOf(h).layout }

// ErrCannotShare says that this process cannot share memory with the others of what
// seemed to be its host: it counts as being on another one then.
var ErrCannotShare = errors.New("no shared memory with the other ranks of this host")

// ShareError is an error of shared memory as one that the job can go on without sharing, where that
// helps: a machine or a process that is at its limits has not enough for that either.
func ShareError(err error) error {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC} {
		if errors.Is(err, e) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrCannotShare, err)
}
