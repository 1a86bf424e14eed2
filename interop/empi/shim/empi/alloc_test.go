package empi_test

import (
	"errors"
	"testing"

	"github.com/emer/empi/empi"
	"github.com/emer/empi/mpi"
)

func init() {
	scenes["alloc"] = func(c *mpi.Comm) error {
		st, end, err := empi.AllocN(24)
		if _, _, odd := empi.AllocN(25); odd == nil {
			return errors.New("25 items go to 3 ranks")
		}
		return same("AllocN", err, []int{st, end}, []int{8 * c.Rank(), 8*c.Rank() + 8})
	}
}

func TestAllocN(t *testing.T) { play(t, "alloc", 3) }
