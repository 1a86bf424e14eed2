package cpu

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
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

// severed finds what became of rank w of the world, since a connection for messages with it broke, as links
// does for a call's. It is true if w has closed c. Else c fails: with the report of w's loss, if there is
// one, and for that reason: w is lost if nobody listens where it did.
func severed(ctx context.Context, c *Comm, w int, why error) (left bool) {
	inject.At("mail.severed")
	if !c.rank.Site.Job.TryHold() { // c is being closed, and was the last
		return false
	}
	defer c.rank.Site.Job.Leave()
	r, yet := c.rank.Group.RankOf(w), plane.LeftYet(c.rank.Site, w)
	gone := func() bool { return c.rank.Share.HasLeft(r) || yet() }
	over := func() bool { return ctx.Err() != nil || gone() }
	failed, code := plane.AwaitFailure(&c.rank, plane.SoonFor, over), call.Backend
	if !failed && !over() {
		switch answer := c.links.Ends.Ask(ctx, r); {
		case errors.Is(answer, tcp.ErrGone):
			return true
		case errors.Is(answer, tcp.ErrRefused): // nobody listens there any more
			code = call.RankLost
			fallthrough
		case errors.Is(answer, tcp.ErrFailed):
			failed = plane.AwaitFailure(&c.rank, plane.LossReportWithin(c.rank.Site, w), over)
		}
	}
	if !failed && !over() {
		c.rank.Fail(call.NewFault(code, r, "%w", why))
	}
	return !failed && ctx.Err() == nil && gone()
}

// RankOf is the rank in c of rank w of the world, -1 if it is none.
func RankOf(c *Comm, w int) int {
	if w < 0 {
		return -1
	}
	return c.rank.Group.RankOf(w)
}
