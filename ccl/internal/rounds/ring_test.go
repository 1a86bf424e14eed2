package rounds

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Whatever rank 0 puts into its ring, and however it learns of what the others have posted, which are as late as it lets them
// be: it writes over data only once all have posted the second round after theirs.
func TestRingKeepsItsRule(t *testing.T) {
	for _, n := range []int{3, 8, 9, 65} {
		for seed := range uint64(10) {
			all := ranksOf(t, n, byDirect)
			c, k, random := all[0], barrier(), rand.New(rand.NewPCG(seed, uint64(n)))
			enter(c, k)
			room, largest := tuning.SlotRoom(n), tuning.SentTo(n)
			posted := c.rank.Order.Start
			post := func() {
				posted++
				for r := 1; r < n; r++ {
					atomic.StoreUint64(c.local.Flag(r, posted), uint64(posted)<<32|1)
				}
			}
			// try makes the others post until f, which waits for them, does not have to.
			try := func(f func() *call.Fault) {
				round, ring := c.rank.Order.Round, c.slots.ring
				for f() != nil {
					m := c.rank // as if it had not failed
					m.Init(m.Site, m.Group.ID(), group.Members{Stride: 1}, m.Group.Topology(), m.Group.Rank(), c.local, plane.Options{})
					c.local.Abort().Store(0)
					c.rank.Order.Round, c.slots.ring = round, ring
					post()
				}
			}
			type data struct {
				round    uint32
				from, to int
			}
			var kept []data
			often := random.IntN(10) // how many of ten rounds it awaits all in
			for range 500 {
				var round uint32
				try(func() (f *call.Fault) { round, f = c.slots.open(ended(t), k, false); return f })
				size := [...]int{0, tuning.BesideFlag, tuning.BesideFlag + 1 + random.IntN(200), room, tuning.BesideFlag + 1 + random.IntN(largest-tuning.BesideFlag)}[random.IntN(5)]
				try(func() *call.Fault { return c.slots.place(ended(t), k, round, size) })
				require.Negative(t, int32(posted-round), "%d ranks, seed %d: it waits for what others post only later", n, seed)
				if size > tuning.BesideFlag {
					from := c.slots.ring.segment*room + c.slots.ring.used - (size+63)&^63
					mine := data{round, from, from + size}
					require.GreaterOrEqual(t, mine.from, 0)
					require.LessOrEqual(t, mine.to, tuning.RingSegments(n)*room)
					still := kept[:0]
					for _, d := range kept {
						if d.from >= mine.to || mine.from >= d.to {
							still = append(still, d)
						} else if round-d.round < c.local.Depth { // else its slot has been used again
							require.GreaterOrEqual(t, int32(posted-d.round), int32(2), "%d ranks, seed %d: round %d writes over round %d", n, seed, round, d.round)
						}
					}
					kept = append(still, mine)
				}
				if random.IntN(10) < often {
					for posted != round {
						post()
					}
					c.slots.seen = round
				}
			}
		}
	}
}
