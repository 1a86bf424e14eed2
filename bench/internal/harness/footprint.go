package harness

import (
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
	return s.out.comment(fmt.Sprintf("Memory %-14s : %.1f MiB a rank, from %.1f to %.1f", stage, sum/float64(len(all)), least, most))
}
