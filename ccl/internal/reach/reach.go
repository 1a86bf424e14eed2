package reach

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Reach is how a rank gets at the memory of the other ranks of its host.
type Reach struct {
	plane.Member
	Agreed
	Pids     []int32 // by rank of the host; 0: this process
	Scratch  []byte
	Maps     map[shm.Place]view // regions of other ranks' MakeSlice memory
	mappings uint64             // how many there have been
	returned uint64             // how many regions of the host had been given back when maps was last swept
	stale    bool               // it is to be swept
	huge     shm.HugePages      // of this rank's memory that others read
	touching bool               // this rank has said that it touches the memory of others
	Untidy   bool               // the call under way has left something to tidy
	at       []unsafe.Pointer   // see Read
	lending
}

// Agreed is what the ranks of the host have agreed on: the same on all.
type Agreed struct {
	Asked bool // they have
	All   bool // they are all in this process
	Reads bool // every rank may read every other's memory, and does in all calls in which that may pay;
	Moves bool // in those at least that move data from each rank to one other: see tuning.Layout.ReadMovedFrom
}
