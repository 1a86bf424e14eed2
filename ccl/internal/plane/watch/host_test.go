package watch

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/lived"
)

// idler is a monitor that does not run.
type idler struct{}

func (idler) Ended() {}

var _ proc.Watcher = idler{}

// hostOf is host 0 of a job whose ranks are on it, each a process, as that of rank 0 has it.
func hostOf(t *testing.T, n int, peer time.Duration) *Host {
	t.Helper()
	s := new(Host)
	world := &gone.State{Ranks: gone.Ranks{Topo: algo.Flat(n)}}
	s.Init(&Job{Mu: new(sync.Mutex), World: world, Lived: new(lived.Clock), Peer: &peer, Monitor: idler{}}, 0)
	for r := range n {
		s.Procs = append(s.Procs, r)
	}
	t.Cleanup(s.Reset)
	return s
}

// sharing is hostOf that shares memory with the other processes.
func sharing(t *testing.T, n int) *Host {
	t.Helper()
	s := hostOf(t, n, 0)
	if err := s.MakeHost(true, nil); err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	return s
}

// regionOn is new memory for the ranks of a Comm on s.
func regionOn(t *testing.T, s *Host) *region.Region {
	t.Helper()
	n := len(s.Procs)
	off, err := s.Host.Alloc(region.Bytes(n))
	require.NoError(t, err)
	return regionAt(t, s.Host, off, n)
}

// regionAt is the region of n ranks that lies there in the memory of a host.
func regionAt(t *testing.T, h *shm.Host, off uint64, n int) *region.Region {
	t.Helper()
	mem, err := h.View(off, region.Bytes(n))
	require.NoError(t, err)
	return region.New(off, mem, n)
}
