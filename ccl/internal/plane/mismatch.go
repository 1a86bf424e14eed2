package plane

import (
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// A rank whose call is another than that of a rank of the same number: found in the memory of the
// host, and in what ranks of other hosts have told.

// OtherCallAt finds a rank of this host whose collective of that number was another. A rank that has
// not come yet is not looked at: it will look itself.
func (c *Share) OtherCallAt(place uint64) *call.Fault {
	mine, ok := c.Local.Made(c.Me, place)
	for r := range c.N {
		if r == c.Me || !ok {
			continue
		}
		if theirs, ok := c.Local.Made(r, place); ok && theirs.Hash != mine.Hash {
			return c.Differs(r, place)
		}
	}
	return nil
}

// Odd finds a rank that has made another call than this one, in calls that cannot look for themselves: of this host,
// or of another that has told of its calls. It may be called from any goroutine.
func (c *Member) Odd() *call.Fault {
	if c.Group.Topology().Nodes() > 1 && !c.Group.Unchecked() {
		c.Standing.note.Lock()
		s, _, ok := c.Standing.status(c.Site.Job.Clock())
		c.Standing.note.Unlock()
		if ok && s.Calls > 0 {
			if f := c.Standing.compareHeard(&s); f != nil {
				return f
			}
		}
	}
	var f *call.Fault
	c.Share.Look(func() { f = c.Share.odd() })
	return f
}

// odd is Odd among the ranks of this host.
func (c *Share) odd() *call.Fault {
	place, mine := c.Local.Collective(c.Me)
	for r := range c.N {
		if w := c.Local.Entered(r).Load(); w>>32 == mine>>32 && w != mine {
			return c.Differs(r, place)
		}
	}
	return c.OtherCallAt(place)
}

// otherCall finds a rank of this host that is in another call of the same number:
// ranks that wait for different peers find it by no message.
func (c *Order) otherCall() *call.Fault {
	mine := c.share.Local.Entered(c.share.Me).Load()
	for r := range c.share.N {
		if w := c.share.Local.Entered(r).Load(); w>>32 == mine>>32 && w != mine {
			return c.share.Differs(r, c.Calls)
		}
	}
	return nil
}

// Differs reports that rank r of this host has made another call, the one of that
// number or one of the last before it.
func (c *Share) Differs(r int, place uint64) *call.Fault {
	f := call.NewFault(call.Mismatch, c.group.LocalRank(r), "")
	for i := range min(uint64(c.Local.Kept-1), place) {
		mine, ok := c.Local.Made(c.Me, place-i)
		theirs, known := c.Local.Made(r, place-i)
		if !ok || !known || mine.Hash == theirs.Hash {
			break
		}
		f.Mine, f.Theirs = &mine, &theirs // hashes are of all calls so far: the first counts
	}
	return f
}

// contradicts reports whether this rank has made another collective than r of its number.
func (c *Share) contradicts(r *call.Record) bool {
	if r.Kind == call.Send || r.Kind == call.Recv || r.Kind == call.SendRecv { // which are in no order of all ranks
		return false
	}
	var mine call.Record
	ok := false
	c.Look(func() { mine, ok = c.Local.Made(c.Me, r.Place) })
	return ok && mine.Hash != r.Hash
}

// compare finds a rank, of this host or one heard of, whose collective of that number was another.
func (c *Standing) compare(s *status.Status) *call.Fault {
	if c.note.looked != s.Calls+1 {
		c.note.looked = s.Calls + 1
		if f := c.compareHeard(s); f != nil {
			return f
		}
	}
	var f *call.Fault
	c.share.Look(func() { f = c.share.OtherCallAt(s.Calls) })
	return f
}

// compareHeard compares with what ranks of other hosts have told.
func (c *Standing) compareHeard(s *status.Status) *call.Fault {
	if other, ok := c.Site.Job.Statuses.Contradiction(s); ok {
		return Disagree(s.Call, other.Call, int(other.Rank))
	}
	return nil
}

// Disagree is the mismatch of this rank's call with that of peer.
func Disagree(mine, theirs call.Record, peer int) *call.Fault {
	return &call.Fault{Code: call.Mismatch, Peer: peer, Mine: &mine, Theirs: &theirs}
}
