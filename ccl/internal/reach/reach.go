package reach

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Reach is how a rank gets at the memory of the other ranks of its host.
type Reach struct {
	me, n    int // this rank's place among those of its host, and how many there are
	local    *region.Region
	rank     *plane.Member
	Known    Agreed
	Pids     []int32 // by rank of the host; 0: this process
	Scratch  []byte
	views    views
	huge     shm.HugePages    // of this rank's memory that others read
	touching bool             // this rank has said that it touches the memory of others
	Untidy   bool             // the call under way has left something to tidy
	at       []unsafe.Pointer // see Read
	lending  lending
}

// Agreed is what the ranks of the host have agreed on: the same on all.
type Agreed struct {
	Asked bool // they have
	All   bool // they are all in this process
	Reads bool // every rank may read every other's memory, and does in all calls in which that may pay;
	Moves bool // in those at least that move data from each rank to one other: see tuning.Layout.ReadMovedFrom
}

// Init readies how a rank gets at the memory of its host.
func (c *Reach) Init(m *plane.Member) {
	c.me, c.n, c.local, c.rank = m.Share.Me, m.Share.N, m.Share.Local, m
	m.Share.Asked.Answer = c.give
}
