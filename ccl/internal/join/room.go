package join

import (
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// roomForCalls makes sure that there is memory for what the calls of the n ranks of this host stage
// and send, which is taken on first use: too little is an error of NewComm, not of a later call.
func roomForCalls(n int, l tuning.Layout) error {
	return RoomFor(uint64(n * (tuning.StageBytes(n) + l.SentRing(n))))
}

// RoomFor is a variable for tests.
var RoomFor = shm.HasRoom
