package shm

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/inject"
)

// CanShare says that processes of one host can share memory on this system.
const CanShare = true

// NewShared makes the memory of a host with several processes: a memfd. It is sealed at its size, since a process that
// shrank it would make every other rank fault.
func NewShared() (*Host, error) {
	h, err := newShared("goccl", headerBytes)
	if err == nil {
		h.enterCores()
	}
	return h, err
}

// newShared is NewShared of which so much of the header is taken.
func newShared(name string, header uint64) (*Host, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shared memory: memfd_create: %w", err)
	}
	if err = unix.Ftruncate(fd, memfdBytes); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err == nil {
		err = reserve(fd, 0, header)
	}
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	h, err := mapHost(fd)
	if err == nil {
		h.own.space.next.Store(headerBytes)
	}
	return h, err
}

// Open opens the memory of a host by the descriptor that its maker has given this process.
func Open(fd int) (*Host, error) {
	h, err := mapHost(fd)
	if err != nil {
		return nil, err
	}
	if err = reserve(fd, 0, headerBytes); err != nil {
		// the memory exists, but a limit of this process may forbid to touch it
		h.Close()
		return nil, err
	}
	h.enterCores()
	return h, nil
}

// NewSlices makes the memory of the slices of h's ranks.
func (h *Host) NewSlices() error {
	s, err := newShared("goccl slices", headerOwn)
	if err == nil {
		h.holdSlices(s, func() bool { return true })
	}
	return err
}

// OpenSlices opens that memory by the descriptor that its maker has given this process, which may
// have it already: in from, which is nil if there is no other Host.
func (h *Host) OpenSlices(fd int, from *Host) error {
	if from != nil && from.slices != nil && h.holdSlices(from.slices, func() bool { return isSame(fd, from.slices.fd) }) {
		unix.Close(fd)
		return nil
	}
	s, err := mapHost(fd) // most jobs have no slices: nothing of it is touched here
	if err == nil {
		h.holdSlices(s, func() bool { return true })
	}
	return err
}

// isSame reports whether two descriptors are of one file.
func isSame(a, b int) bool {
	var x, y unix.Stat_t
	return unix.Fstat(a, &x) == nil && unix.Fstat(b, &y) == nil && x.Dev == y.Dev && x.Ino == y.Ino
}

// mapHost maps the header of a memfd.
func mapHost(fd int) (*Host, error) {
	mem, err := mapRegion(fd, 0, headerBytes)
	if err != nil {
		unix.Close(fd)
		return nil, err
	}
	h := &Host{fd: fd, own: (*header)(unsafe.Pointer(&mem[0])), users: unsafe.Pointer(&mem[headerOwn]),
		maps: map[Place]*mapping{}}
	h.maps[PlaceAt(0, headerBytes)] = &mapping{mem: mem, refs: 1}
	return h, nil
}

// enterCores adds the processors that this process may run on to those of the host's ranks: launchers bind each
// rank to its own, so that one process's mask says nothing about all of them.
func (h *Host) enterCores() {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return
	}
	for i := range min(len(set), len(h.own.cores)) {
		h.own.cores[i].Or(uint64(set[i]))
	}
}

// reserve makes sure that memory is there: a full machine is an error now, not a
// SIGBUS later. It takes the memory step by step, and looks before each of them
// whether there is room: so ranks that take memory at the same moment see what the
// others have taken, and stop before the kernel kills.
func reserve(fd int, off, n uint64) error {
	if err := HasRoom(n); err != nil {
		return err
	}
	for done := uint64(0); done < n; {
		step := min(n-done, reserveStep)
		if done > 0 {
			if err := HasRoom(step); err != nil {
				release(fd, off, done)
				return err
			}
		}
		err := unix.Fallocate(fd, 0, int64(off+done), int64(step))
		if err == nil {
			done += step
		} else if !errors.Is(err, unix.EINTR) {
			release(fd, off, done)
			return fmt.Errorf("shared memory: no %d KiB left on this host (%w); free memory or use fewer ranks", n>>10, err)
		}
	}
	return nil
}

const reserveStep = 16 << 20

// release empties memory. If it fails, the memory stays taken until the job ends; there is nobody to tell.
func release(fd int, off, n uint64) bool {
	for {
		err := unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(n))
		if !errors.Is(err, unix.EINTR) {
			return err == nil
		}
	}
}

func mapRegion(fd int, off uint64, n int) ([]byte, error) {
	var mem []byte
	err := error(unix.ENOMEM)
	if !inject.Cut("cpu.map") {
		mem, err = unix.Mmap(fd, int64(off), n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	}
	if err != nil {
		return nil, fmt.Errorf("shared memory: cannot map %d KiB: %w", n>>10, err)
	}
	// A forked child must not scribble here.
	_ = unix.Madvise(mem, unix.MADV_DONTFORK)
	return mem, nil
}

// mapSlice maps n bytes of a file for a slice, or private ones: not by the package that remembers
// what it has mapped, of which a part may be replaced.
func mapSlice(fd int, off uint64, n int) ([]byte, error) {
	flags := unix.MAP_SHARED
	if fd < 0 {
		flags = unix.MAP_PRIVATE | unix.MAP_ANON
	}
	var p unsafe.Pointer
	err := error(unix.ENOMEM)
	if !inject.Cut("cpu.map") {
		p, err = unix.MmapPtr(fd, int64(off), nil, uintptr(n), unix.PROT_READ|unix.PROT_WRITE, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot map %d KiB: %w", n>>10, err)
	}
	mem := unsafe.Slice((*byte)(p), n)
	if fd >= 0 {
		_ = unix.Madvise(mem, unix.MADV_DONTFORK) // as in mapRegion
	}
	return mem, nil
}

// empty returns the memory of a piece, and its place: nobody will use it again. This works by its mapping, since the
// descriptor may be closed by now.
func (h *Host) empty(m *memory) {
	size := pages(len(m.mem))
	if unix.Madvise(unsafe.Slice(&m.mem[0], size), unix.MADV_REMOVE) == nil {
		h.give(m.base.Off+m.at, len(m.mem))
	}
}

// replace maps size bytes of new memory over the piece: of the host or, if that cannot be, of this process alone. What
// other processes have mapped is no longer what is here.
func (m *memory) replace(size int) bool {
	m.base = Place{Size: uint64(len(m.mem))}
	if HasRoom(uint64(size)) == nil && m.host.mapNew(m, size) {
		return true
	}
	m.host = nil
	return mapOver(m.mem, size, -1, 0)
}

// mapNew maps size bytes of new memory of h over the piece, and notes where. A slice may outlive
// its host: of one that is closed nothing is there any more, neither the header nor the descriptor.
func (h *Host) mapNew(m *memory, size int) bool {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return false
	}
	off, ok := h.own.space.take(uint64(size))
	mapped := ok && mapOver(m.mem, size, h.fd, off)
	h.mu.Unlock()
	if mapped {
		m.base.Off = off
	} else if ok {
		h.give(off, size)
	}
	return mapped
}

// mapOver maps size bytes of a file, or private ones, where mem lies.
func mapOver(mem []byte, size, fd int, off uint64) bool {
	flags := unix.MAP_FIXED | unix.MAP_SHARED
	if fd < 0 {
		flags = unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANON
	}
	if _, err := unix.MmapPtr(fd, int64(off), unsafe.Pointer(&mem[0]), uintptr(size), unix.PROT_READ|unix.PROT_WRITE,
		flags); err != nil {
		return false
	}
	if fd >= 0 {
		_ = unix.Madvise(unsafe.Slice(&mem[0], size), unix.MADV_DONTFORK)
	}
	return true
}

// unmapAll unmaps the n bytes of a slice that begins with mem, whatever lies there by now.
func unmapAll(mem []byte, n int) { _ = unix.MunmapPtr(unsafe.Pointer(&mem[0]), uintptr(pages(n))) }

func unmap(mem []byte) { _ = unix.Munmap(mem) }

func CloseFD(fd int) { unix.Close(fd) }
