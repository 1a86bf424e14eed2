package plane

import "github.com/goccl/goccl/ccl/internal/plane/watch"

// Leave counts c out, which looks at nothing that the ranks share from here on. If it is the last,
// Free of what it returns frees what made lists. Of a Comm of Split it counts no rank that never had
// it: the last to leave the Comm that was split does (see orphaned of package cpu).
func Leave(c *Member, split bool, made watch.Lister) *watch.Leaver {
	of := watch.Leaving{Host: c.Share.Host, Local: c.Share.Local, Me: c.Share.Me, Split: split, Made: made,
		HasFailed: c.Fate.Cause() != nil}
	for _, r := range c.Share.Ranks {
		of.Ranks = append(of.Ranks, c.Group.World(r))
	}
	c.Share.Shut()
	return c.Site.Here.Leavers.Leave(of)
}
