package plane

import (
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/environ"
)

// readPreference is whether a rank would read other processes' memory, by its host's layout and the
// environment of its process. It decides nothing: ranks tell each other, and do what all of them
// prefer (package rounds), or say with a message how it goes (package links).
type readPreference struct {
	all   bool // to read other processes' memory in all calls in which that may pay,
	moves bool // or in those at least that move data from each rank to one other
	least int  // bytes of a message that is read; 0: none is
}

// preferenceOf is the preference of a rank in a Comm with n ranks on this host, where GOCCL_SHM_READ is asked.
func preferenceOf(asked string, l *tuning.Layout, n, processors int) (p readPreference) {
	p.all = asked == "1" || asked != "0" && l.ReadOthers && n <= processors
	p.moves = p.all || asked != "0" && l.ReadMovedFrom > 0
	switch {
	case p.all:
		p.least = 1
	case asked == "0":
	case n > processors: // a turn of both ranks for each fill of the pipe takes longer than all else
		p.least = tuning.ReadCrowdedFrom
	case p.moves:
		p.least = l.ReadMovedFrom
	}
	return p
}

// setReadPreference sets this rank's preference, as the Comm begins.
func (c *Standing) setReadPreference() {
	c.share.prefers = preferenceOf(environ.SHMRead.Get(), &c.share.Local.Layout, c.share.N, c.Site.Here.Host.Processors())
}

// WouldRead reports in which calls this rank is for reading other processes' memory, where that
// beats staging: all, among ranks with a core each, or those that move data from each rank to one
// other.
func (c *Standing) WouldRead() (all, moves bool) { return c.share.prefers.all, c.share.prefers.moves }

// WouldReadMessage reports whether it is for reading a message of n bytes.
func (c *Standing) WouldReadMessage(n int) bool { return c.share.prefers.message(n) }

func (p readPreference) message(n int) bool { return p.least > 0 && n >= p.least }
