package cpu

import (
	"context"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// OpenMail returns this rank's mail in c. Faults in it name ranks of the world.
func OpenMail(c *Comm) (*mail.Account, error) {
	office, err := c.rank.Site.Job.Net.Post.Open()
	if err != nil {
		return nil, err
	}
	in := mail.Membership{Comm: c.ID(), Self: c.World(c.Rank()), Limit: c.rank.Group.Timeout()}
	for r := range c.Size() {
		if r != c.Rank() {
			in.Others = append(in.Others, c.World(r))
		}
	}
	in.Left = func(w int) bool {
		return c.rank.Share.HasLeft(c.rank.Group.RankOf(w)) || c.rank.Site.KnownLeft(w)
	}
	in.Sure = func(w int) bool { // the next lead of w's host may be late: see gone.Ranks.HasLeft
		j := c.rank.Site.Job
		if !j.TryHold() { // this process has left, and asks in vain
			return true
		}
		defer j.Leave()
		return c.rank.Share.HasLeft(c.rank.Group.RankOf(w)) || plane.LeftYet(c.rank.Site, w)() ||
			plane.IsDeserted(c.rank.Site, j.World.Topo.Node(w))
	}
	in.Severed = func(ctx context.Context, w int, why error) bool { return severed(ctx, c, w, why) }
	return office.Open(in), nil
}

// ShutMail refuses messages to this rank in c, which has failed or which the rank has closed. The rank has no
// mail in c.
func ShutMail(c *Comm, closed bool) {
	if inject.Wrong("cpu.shut") {
		return
	}
	c.rank.Site.Job.Net.Post.Office.Shut(c.ID(), c.World(c.Rank()), closed)
}

// severed finds what has become of rank w of the world, since a connection for messages with it
// broke, for that reason. It is true if w has closed c. Else c fails: with the report of a failure,
// if there is one; else for that reason, for which w is lost if nobody listens where it did.
func severed(ctx context.Context, c *Comm, w int, why error) (left bool) {
	inject.At("mail.severed")
	if !c.rank.Site.Job.TryHold() { // c is being closed, and was the last
		return false
	}
	defer c.rank.Site.Job.Leave()
	r := c.rank.Group.RankOf(w)
	became, trouble := c.links.Ends.BecameOf(ctx, r, func(limit time.Duration, over func() bool) bool {
		return plane.AwaitFailure(&c.rank, limit, func() bool {
			return ctx.Err() != nil || c.rank.Share.HasLeft(r) || over()
		})
	})
	if ctx.Err() != nil { // nobody needs to know
		return false
	}
	switch became {
	case links.Left:
		return true
	case links.Ended:
		c.rank.Fail(call.NewFault(call.RankLost, r, "%w", why))
	case links.Unasked:
		c.rank.Fail(call.NewFault(call.Backend, c.Rank(), "%w, and rank %d cannot be asked: %w", why, r, trouble))
	case links.Unknown:
		c.rank.Fail(call.NewFault(call.Backend, r, "%w", why))
	}
	return false
}

// RankOf is the rank in c of rank w of the world, -1 if it is none.
func RankOf(c *Comm, w int) int {
	if w < 0 {
		return -1
	}
	return c.rank.Group.RankOf(w)
}
