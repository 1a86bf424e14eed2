package harness

import (
	"errors"
	"fmt"

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
	least, most, sum := all[0], all[0], 0.0
	for _, x := range all {
		least, most, sum = min(least, x), max(most, x), sum+x
	}
	if bytes, err := s.library(); err != nil {
		return err
	} else if bytes > 0 {
		if err := s.out.comment(fmt.Sprintf("Memory %-14s : at most %.1f MiB of a device for the library", stage, float64(bytes)/(1<<20))); err != nil {
			return err
		}
	}
	return s.out.comment(fmt.Sprintf("Memory %-14s : %.1f MiB a rank, from %.1f to %.1f", stage, sum/float64(len(all)), least, most))
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
