package plane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// awaited is the rank of the world that this one waits for in s, -1 if that is not known. c.note is locked.
func (c *Member) awaited(s *status.Status) int32 {
	if s.Doing != status.Waits {
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
	ws, me := status.WaitsIn(c.Site.Statuses.Of(0), c.Site.Clock(), max(c.Opt.Timeout/2, time.Second)), int32(c.Members.World(c.rank))
	var here []int // ranks of c that wait for nobody
	other, by := int32(-1), (*status.Status)(nil)
	for _, r := range missing {
		w := int32(c.Members.World(r))
		end, last := ws.LateBehind(w, me)
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
