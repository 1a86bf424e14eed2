package empi

import (
	"fmt"
	"math/rand"

	"github.com/emer/empi/mpi"
)

// RandCheck takes a number from math/rand, and fails on every rank if the ranks do not have the same.
func RandCheck(comm *mpi.Comm) error {
	mine := []int{rand.Int()}
	all := make([]int, comm.Size())
	if err := comm.AllGatherInt(all, mine); err != nil {
		return err
	}
	var differ []int // from rank 0, so that all ranks say the same
	for r, n := range all {
		if n != all[0] {
			differ = append(differ, r)
		}
	}
	if differ == nil {
		return nil
	}
	err := fmt.Errorf("empi: RandCheck: the random numbers of ranks %v differ from those of rank 0", differ)
	mpi.Printf("%v\n", err)
	return err
}
