package plane

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
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// board is what the processes of a host tell each other at the beginning of its memory.
type board struct {
	world  atomic.Uint64 // the region of the job's first Comm
	pulses atomic.Uint64 // the table of pulses
	number uint64        // of the job on this host, by chance; does not change, as layout
	layout tuning.Layout
	told   reportedLosses
	_      [80 - unsafe.Sizeof(reportedLosses{})]byte
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
	boardOf(h).init()
	return h, nil
}

// init is what the first process of a host decides for all.
func (b *board) init() { b.layout, b.number = machine.CPU.Layout, proc.Number() }

// LayoutOf is where data lie in the memory of h.
func LayoutOf(h *shm.Host) tuning.Layout { return boardOf(h).layout }

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

// MakeHost makes the memory of this host, with the region of the job's first Comm. If shared, other
// processes are to take it. Slices of from, the memory of the job that this one grows out of, are
// slices of this host as well; it is nil if there is none.
func (s *host) MakeHost(shared bool, from *shm.Host) error {
	h := PrivateHost()
	if shared {
		var err error
		if h, err = sharedHost(from); err != nil {
			return err
		}
	} else {
		h.ShareSlices(from) // a later job may have other processes here
	}
	n := s.Job.World.Topo.Locals(s.Node)
	off, err := h.Alloc(region.Bytes(n))
	if err != nil {
		h.Close()
		return err
	}
	boardOf(h).world.Store(off)
	s.open(h)
	if !shared {
		return nil
	}
	if off, err = h.Alloc(pulseBytes(n)); err != nil {
		return err
	}
	boardOf(h).pulses.Store(off)
	return s.showPulse(h)
}

// TakeHost makes h, which another process has made, the memory of this host.
func (s *host) TakeHost(h *shm.Host) error {
	s.open(h)
	return s.showPulse(h)
}

// FirstRegion is where the region of the job's first Comm lies.
func (s *host) FirstRegion() uint64 { return boardOf(s.Host).world.Load() }

// open lets the monitor see the host's memory.
func (s *host) open(h *shm.Host) {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	s.Host = h
}
