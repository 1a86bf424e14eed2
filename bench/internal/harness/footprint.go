package harness

import (
	"errors"

	"github.com/goccl/goccl/bench/internal/stat"
	"github.com/goccl/goccl/ccl"
)

// memoryReport is a line of -M: what the processes take now, as nccl-tests' -M 1 names
// the stages.
func (s *session) memoryReport(stage string) error {
	if !s.o.Memory {
		return nil
	}
	mib := float64(resident()) / (1 << 20)
	all := make([]float64, s.world.Size())
	if err := ccl.AllGather(s.ctx, s.world, all, []float64{mib}); err != nil {
		return err
	}
	bytes, err := s.library()
	if bytes > 0 {
		s.out.note("Memory %-14s : at most %.1f MiB of a device for the library", stage, float64(bytes)/(1<<20))
	}
	ranks := stat.Of(all)
	s.out.note("Memory %-14s : %.1f MiB a rank, from %.1f to %.1f", stage, ranks.Avg, ranks.Min, ranks.Max)
	return err
}

// library is the most that the library of a rank's Comms has allocated on its device, 0 where none
// says so.
func (s *session) library() (bytes uint64, err error) {
	for _, l := range s.lanes {
		n, err := ccl.DeviceMemory(l.c)
		if err != nil && !errors.Is(err, ccl.ErrUnsupported) {
			return 0, err
		}
		bytes += n
	}
	one := []uint64{bytes}
	if err := ccl.AllReduce(s.ctx, s.world, one, one, ccl.Max); err != nil {
		return 0, err
	}
	return one[0], nil
}
