package cpu

import "time"

// Disturbed is a Bootstrap of a rank that is to go wrong: package ccltest's.
type Disturbed interface {
	// BeforeCall is called before each call of the rank, on any of its Comms. A fault fails
	// the Comm.
	BeforeCall(c *Comm, k *Call) *Fault
}

// Die makes this rank one that is lost, to all other ranks and itself, for the reason given. It
// stands in for the end of a process that has other ranks, too. It returns when that is settled.
func (c *Member) Die(cause error) {
	c.site.lost(c.members.world(c.rank), cause)
	for end := time.Now().Add(time.Second); c.cause.Load() == nil && time.Now().Before(end); {
		time.Sleep(tick)
	}
}

// Isolate fails the Comm on this rank alone, which sees the lowest other rank as lost.
func (c *Member) Isolate(cause error) *Fault {
	other := 0
	if c.rank == 0 {
		other = min(1, c.Size()-1)
	}
	c.failHere(&Fault{Code: RankLost, Peer: other, Err: cause})
	return c.cause.Load()
}

// Silence is Options.PeerTimeout, 0 if there is none.
func (c *Member) Silence() time.Duration { return c.opt.PeerTimeout }
