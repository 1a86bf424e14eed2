package empi

import (
	"fmt"
	"log"

	"github.com/emer/empi/mpi"
)

// AllocN is this rank's share of n items, from st to before end. n must be a multiple of the number of ranks.
func AllocN(n int) (st, end int, err error) {
	size := mpi.WorldSize()
	if n%size != 0 {
		err = fmt.Errorf("empi: AllocN: %d items are no multiple of %d ranks", n, size)
		log.Print(err)
	}
	share := n / size
	st = share * mpi.WorldRank()
	return st, st + share, err
}
