package cpu

import (
	"github.com/goccl/goccl/ccl/internal/mail"
)

// OpenMail returns this rank's mail in c. Faults in it name ranks of the world.
func OpenMail(c *Comm) (*mail.Account, error) {
	office, err := c.rank.Site.Job.Mail()
	if err != nil {
		return nil, err
	}
	var others []int
	for r := range c.Size() {
		if r != c.Rank() {
			others = append(others, c.World(r))
		}
	}
	return office.Open(c.ID(), c.World(c.Rank()), others, c.rank.Group.Timeout(), func(w int) bool {
		return c.rank.Share.HasLeft(c.rank.Group.RankOf(w)) || c.rank.Site.KnownLeft(w)
	}), nil
}

// RankOf is the rank in c of rank w of the world, -1 if it is none.
func RankOf(c *Comm, w int) int {
	if w < 0 {
		return -1
	}
	return c.rank.Group.RankOf(w)
}
