package elastic

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/handover"
)

// restore has the ranks that have the state send it to those that need it: each a part, and then all of it by
// one rank after the other if what arrives has not the hash that it should have.
func (m *member) restore(ctx context.Context, v verdict) error {
	me := m.c.Rank()
	receives := slices.Contains(v.need, me)
	// what has a place of its own is copied when all has arrived: a loss must not leave half a state
	// in the place of an earlier one, which may be the last one that there is
	parts, err := handover.New(m.views, m.job.State, receives, m.record.in)
	if err != nil {
		return err
	}
	for try := range len(v.sources) + 1 {
		from := v.sources
		if try > 0 {
			from = from[try-1 : try]
			if receives { // over what has arrived, perhaps
				m.record.in, m.record.round = false, -1
			}
		}
		if err := parts.Move(ctx, m.c, from, v.need); err != nil {
			return err
		}
		ok := []int64{1}
		if receives {
			hash, err := parts.Arrived()
			if err != nil {
				return err
			}
			if ok[0] = bit(hash == v.state.hash); ok[0] == 0 {
				m.record.in, m.record.round = false, -1 // whatever it was, it is not the state of a round
				m.opt.Log.Warn(fmt.Sprintf("elastic: rank %d: the state that ranks %v sent has not the hash that they gave", me, from))
			} else { // even if a rank is lost before all know
				m.record.in, m.record.round, m.record.begun, m.record.idle = v.state.in, v.state.round, false, false
			}
		}
		if err := ccl.AllReduce(ctx, m.c, ok, ok, ccl.Min); err != nil || ok[0] == 1 {
			return err
		}
	}
	return fmt.Errorf("elastic: none of the ranks %v sends the state that it says it has", v.sources)
}
