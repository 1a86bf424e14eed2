package ccl

import "github.com/goccl/goccl/internal/agree"

// generations are the pools of a job with spares, one after the other, as a rank knows them that is
// in the last: it was in all before, and all ranks of one know the same of it. They are numbered
// from 0.
type generations struct {
	last     int
	accepted int           // the last that had a majority of the one that was accepted before
	members  map[int][]int // ranks of the job, from accepted on
	ended    map[int][]int // ranks that the one before had and it has not, whose end is certain, or that have closed
	gone     map[int]bool  // those of all of them
}

// begin makes g the first pool, of all ranks.
func (g *generations) begin(all []int) {
	*g = generations{members: map[int][]int{0: all}, ended: map[int][]int{}, gone: map[int]bool{}}
}

// add is the next pool.
func (g *generations) add(members, ended []int) {
	g.last++
	g.members[g.last], g.ended[g.last] = members, ended
	for _, w := range ended {
		g.gone[w] = true
	}
}

// hasMajority reports whether those that are here, the last pool, may go on in the place of all of
// generation accepted, which is of so many ranks.
func (g *generations) hasMajority(accepted int, here []int) (of int, ok bool) {
	var ended []int
	for n := accepted + 1; n <= g.last; n++ {
		ended = append(ended, g.ended[n]...)
	}
	return len(g.members[accepted]), agree.Majority(g.members[accepted], here, ended)
}

// accept notes that the last pool goes on, and forgets what nobody will ask for.
func (g *generations) accept() {
	g.accepted = g.last
	for n := range g.members {
		if n < g.accepted {
			delete(g.members, n)
			delete(g.ended, n)
		}
	}
}
