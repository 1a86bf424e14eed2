package harness

import (
	"time"

	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/ccl"
)

// delayed is by how much one rank comes late to a checked barrier. It is long against the time in which
// the other ranks, of a busy machine too, get to leave a barrier that does not wait.
const delayed = 10 * time.Millisecond

// checkBarrier makes a barrier to which one rank of each group comes late, another one each time: no rank may
// leave before it has come. Ranks are compared by their host's clock, so a host sees its own ranks alone, and
// the late one is a rank with company there. A group that has none sees nothing, and counts as unchecked.
func (t *test[T]) checkBarrier(f *findings) error {
	s := t.s
	s.seed++
	visible := s.groups.visible(s.world.Rank())
	late := len(visible) > 0 && visible[int(s.seed%uint64(len(visible)))] == s.world.Rank()
	// The ranks meet by data: what is being checked may be the barrier of this very Comm.
	here := []int64{0}
	if err := ccl.AllReduce(t.ctx, s.world, here, here, ccl.Sum); err != nil {
		return err
	}
	if late {
		time.Sleep(delayed)
	}
	enter, ok := machine.Clock()
	if err := t.call(t.nextBuffers()); err != nil {
		return err
	}
	exit, _ := machine.Clock()
	entered := make([]int64, s.world.Size())
	if err := ccl.AllGather(t.ctx, s.world, entered, []int64{enter}); err != nil {
		return err
	}
	f.rounds++
	if f.checked = ok && len(visible) > 0; f.checked && s.groups.early(s.world.Rank(), exit, entered) {
		if f.wrong++; f.wrong == 1 {
			f.round = f.rounds
		}
	}
	return nil
}

// visible are the ranks of a rank's group that share their host with another of it.
func (g groups) visible(rank int) (ranks []int) {
	here := map[int]int{} // by node
	for r, color := range g.color {
		if color == g.color[rank] {
			here[g.node[r]]++
		}
	}
	for r, color := range g.color {
		if color == g.color[rank] && here[g.node[r]] > 1 {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// early reports whether a rank left a barrier before another of its group and host had entered it.
func (g groups) early(rank int, exit int64, entered []int64) bool {
	for r, enter := range entered {
		if g.color[r] == g.color[rank] && g.node[r] == g.node[rank] && exit < enter {
			return true
		}
	}
	return false
}
