package plane

import (
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/environ"
)

// wish is what a rank would rather do, as its host's layout and the environment of its process have it. It decides nothing: ranks
// tell each other, and do what all of them wish (package rounds), or say with a message how it goes (package links).
type wish struct {
	all   bool // to read other processes' memory in all calls in which that may pay,
	moves bool // or in those at least that move data from each rank to one other
	least int  // bytes of a message that is read; 0: none is
}

// wishOf is the wish of a rank in a Comm of whose ranks n are on this host, where GOCCL_SHM_READ is asked.
func wishOf(asked string, l *tuning.Layout, n, processors int) (w wish) {
	w.all = asked == "1" || asked != "0" && l.ReadOthers && n <= processors
	w.moves = w.all || asked != "0" && l.ReadMovedFrom > 0
	switch {
	case w.all:
		w.least = 1
	case asked == "0":
	case n > processors: // a turn of both ranks for each fill of the pipe takes longer than all else
		w.least = tuning.ReadCrowdedFrom
	case w.moves:
		w.least = l.ReadMovedFrom
	}
	return w
}

// makeWish makes up this rank's mind, as the Comm begins.
func (c *Standing) makeWish() {
	c.share.wish = wishOf(environ.SHMRead.Get(), &c.share.Local.Layout, c.share.N, c.Site.Here.Host.Processors())
}

// WouldRead reports in which calls this rank is for reading other processes' memory, where that beats staging: all, among ranks
// with a core each, or those that move data from each rank to one other.
func (c *Standing) WouldRead() (all, moves bool) { return c.share.wish.all, c.share.wish.moves }

// WouldReadMessage reports whether it is for reading a message of n bytes.
func (c *Standing) WouldReadMessage(n int) bool { return c.share.wish.message(n) }

func (w wish) message(n int) bool { return w.least > 0 && n >= w.least }
