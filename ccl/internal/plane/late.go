package plane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// The late rank. The rank that a call waits for may itself wait, in another Comm, for a rank that is late. All of them
// wait about as long, and any of their calls may be the first to give up. So a rank that gives up follows the waits that
// all ranks have told of (see look.go), in any Comm, to a rank that waits for nobody, and names that one.

// waits are the statuses of the ranks of the world that wait, by rank.
type waits map[int32][]*Status

// waitsIn picks them out, in one pass. A rank whose Comm has failed within giveUp has waited there until then.
func waitsIn(all []Status, now int64, giveUp time.Duration) waits {
	ws := waits{}
	for i := range all {
		s := &all[i]
		if s.Doing == Waits && now-s.heard <= int64(s.holds()) && (!s.Failed || now-s.heard <= int64(giveUp)) {
			ws[s.World] = append(ws[s.World], s)
		}
	}
	return ws
}

// lateBehind is the rank of the world at the end of the waits from rank w on; last is the status of the rank that waits
// for it. It is -1 if there is no end, since ranks wait for each other or do not say for which. me is the rank that asks.
func (ws waits) lateBehind(w, me int32) (end int32, last *Status) {
	seen := map[int32]bool{me: true}
	var visit func(w int32, by *Status) (int32, *Status)
	visit = func(w int32, by *Status) (int32, *Status) {
		if seen[w] {
			return -1, nil
		}
		seen[w] = true
		for _, s := range ws[w] {
			if s.For >= 0 {
				if end, last := visit(s.For, s); end >= 0 {
					return end, last
				}
			}
		}
		if len(ws[w]) > 0 {
			return -1, nil
		}
		return w, by
	}
	return visit(w, nil)
}

// holds is how long a status of a rank that waits is true: twice the time after which it says so again.
func (s *Status) holds() time.Duration {
	return 2 * (publishAgain + time.Duration(s.Size)*perRank)
}

// awaited is the rank of the world that this one waits for in s, -1 if that is not known. c.note is locked.
func (c *Member) awaited(s *Status) int32 {
	if s.Doing != Waits {
		return -1
	}
	if !call.IsPairwise(s.Call.Kind) {
		c.Life.Lock()
		defer c.Life.Unlock()
		if c.Gone {
			return -1
		}
		if late := c.Behind(); len(late) > 0 {
			return int32(c.Members.World(late[0]))
		}
	}
	if s.Peer < 0 {
		return -1
	}
	return int32(c.Members.World(int(s.Peer)))
}

// Unfinished is the fault of a call that ends unfinished as of ended, for a reason. missing are the ranks of c that it waits for.
func (c *Member) Unfinished(ended, why error, missing []int) *call.Fault {
	f := call.CtxFault(ended, missing)
	f.Err = why
	if len(missing) == 0 {
		return f
	}
	ws, me := waitsIn(c.Site.standing(0), c.Site.Clock(), max(c.Opt.Timeout/2, time.Second)), int32(c.Members.World(c.rank))
	var here []int // ranks of c that wait for nobody
	other, by := int32(-1), (*Status)(nil)
	for _, r := range missing {
		w := int32(c.Members.World(r))
		end, last := ws.lateBehind(w, me)
		if end < 0 {
			continue
		}
		if r := c.Members.Rank(int(end), c.Size()); r >= 0 {
			if !slices.Contains(here, r) {
				here = append(here, r)
			}
		} else if other < 0 {
			other, by = end, last
		}
	}
	switch {
	case len(here) > 0:
		slices.Sort(here)
		f.Peer, f.Missing = here[0], here
	case other >= 0: // not this rank's, nor one of c, is the fault
		f.Peer, f.Own = -1, false
		f.Err = fmt.Errorf("world rank %d is late in %s: %w", other, by.Name(), why)
	}
	return f
}

// overdue is the fault of a call that has taken Options.Timeout.
func (c *Member) overdue(missing []int) *call.Fault {
	return c.Unfinished(context.DeadlineExceeded, fmt.Errorf("not done after %v", c.Opt.Timeout), missing)
}
