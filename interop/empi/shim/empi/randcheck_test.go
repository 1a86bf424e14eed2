package empi_test

import (
	"errors"
	"math/rand"
	"testing"

	"github.com/emer/empi/empi"
	"github.com/emer/empi/mpi"
)

// Without rand.Seed each process has random numbers of its own.
func init() {
	scenes["random"] = func(c *mpi.Comm) error {
		if err := empi.RandCheck(c); err == nil {
			return errors.New("no error")
		}
		return nil
	}
	scenes["seeded"] = func(c *mpi.Comm) error {
		//lint:ignore SA1019 it is what emergent calls
		rand.Seed(1)
		return empi.RandCheck(c)
	}
}

func TestRandCheck(t *testing.T) {
	play(t, "random", 2)
	t.Setenv("GODEBUG", "randseednop=0")
	play(t, "seeded", 2)
}
