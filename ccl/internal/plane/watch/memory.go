package watch

import (
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// MakeHost makes the memory of this host, with the region of the job's first Comm. If shared, other
// processes are to take it. Slices of from, the memory of the job that this one grows out of, are
// slices of this host as well; it is nil if there is none.
func (s *Host) MakeHost(shared bool, from *shm.Host) error {
	h := PrivateHost()
	if shared {
		var err error
		if h, err = sharedHost(from); err != nil {
			return err
		}
	} else {
		h.ShareSlices(from) // a later job may have other processes here
	}
	n := s.World.Topo.Locals(s.Node)
	off, err := h.Alloc(region.Bytes(n))
	if err != nil {
		h.Close()
		return err
	}
	BoardOf(h).world.Store(off)
	s.open(h)
	if !shared {
		return nil
	}
	if off, err = h.Alloc(pulseBytes(n)); err != nil {
		return err
	}
	BoardOf(h).pulses.Store(off)
	return s.Processes.show(h)
}

// TakeHost makes h, which another process has made, the memory of this host.
func (s *Host) TakeHost(h *shm.Host) error {
	s.open(h)
	return s.Processes.show(h)
}

// FirstRegion is where the region of the job's first Comm lies.
func (s *Host) FirstRegion() uint64 { return BoardOf(s.Host).world.Load() }

// open lets the monitor see the host's memory.
func (s *Host) open(h *shm.Host) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Host = h
}

// Reset gives back what s holds, after an unsuccessful try to share memory, once nobody uses it.
func (s *Host) Reset() {
	s.Processes.Hide()
	s.CloseRinger()
	s.Mu.Lock()
	d, ends := s.Ends.Entrance, s.Ends.unix
	s.Ends.Entrance, s.Ends.unix = nil, nil
	s.Mu.Unlock()
	if d != nil {
		d.Shut()
		d.Drop()
	}
	for _, c := range ends {
		closeInOrder(c)
	}
	s.Ends.Attending.Wait()
	s.Log.kept.Lock()
	s.Log.kept.events = nil
	s.Log.kept.Unlock()
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Log.scanned.Store(0)
	if s.Host != nil {
		s.Host.Close()
		s.Host = nil
	}
}
