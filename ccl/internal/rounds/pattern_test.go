package rounds

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// A small call as data: what each rank opens, posts, awaits and reads, in which order. TestPatternHolds proves it, and
// TestRanksFollowPattern holds the code against it.

type action uint8

const (
	open  action = iota // a round: it may wait until the slot is free
	post                // the round
	await               // rank's post of the round
	take                // rank's operand from its slot of the round
	end
)

// step is one action of a rank.
type step struct {
	do   action
	rank int
}

// pattern is what rank me of n does in a call, which is one round.
func pattern(n, me int) (list []step) {
	list = append(list, step{open, me}, step{post, me})
	for i := 1; i < n; i++ {
		list = append(list, step{await, (me + i) % n})
	}
	for r := range n {
		list = append(list, step{take, r})
	}
	return list
}

// proof plays calls one after another, among n ranks with slots of some depth, and follows which events precede which, whatever
// the order in which the ranks run: an event precedes what its rank does later, and a post precedes what a rank does that has
// awaited it.
type proof struct {
	n, depth int
	ranks    []prover
	posted   []map[int][]int // by rank and round, how far each rank had come before that post
	read     []map[int][]int // by rank and round, after how many of its events each rank had last read that slot
}

type prover struct {
	todo   []step
	result [][]int
	at     int
	round  int // of the call under way
	events int
	before []int // of each rank, how many of its events precede this rank's next
	seen   int
	got    []int
}

func newProof(n, depth, calls int) *proof {
	p := &proof{n: n, depth: depth, ranks: make([]prover, n)}
	for _, to := range []*[]map[int][]int{&p.posted, &p.read} {
		*to = make([]map[int][]int, n)
		for r := range *to {
			(*to)[r] = map[int][]int{}
		}
	}
	for me := range p.ranks {
		c := &p.ranks[me]
		c.before, c.seen = make([]int, n), -1
		for range calls {
			c.todo = append(append(c.todo, pattern(n, me)...), step{do: end})
		}
	}
	return p
}

// run plays all ranks as far as they come. It returns what is wrong.
func (p *proof) run() error {
	for more := true; more; {
		more = false
		for me := range p.ranks {
			for {
				went, err := p.step(me)
				if err != nil {
					return fmt.Errorf("rank %d, call %d: %w", me, p.ranks[me].round, err)
				}
				if !went {
					break
				}
				more = true
			}
		}
	}
	for me := range p.ranks {
		if c := &p.ranks[me]; c.at < len(c.todo) {
			return fmt.Errorf("rank %d waits for ever in call %d: %+v", me, c.round, c.todo[c.at])
		}
	}
	return nil
}

// join has all that precedes that post precede what rank me does from now on.
func (p *proof) join(me, rank, round int) bool {
	then, ok := p.posted[rank][round]
	if !ok {
		return false
	}
	for r, e := range then {
		p.ranks[me].before[r] = max(p.ranks[me].before[r], e)
	}
	return true
}

// step plays the next step of rank me, if that can be made.
func (p *proof) step(me int) (bool, error) {
	c := &p.ranks[me]
	if c.at == len(c.todo) {
		return false, nil
	}
	s, round := c.todo[c.at], c.round
	c.before[me] = c.events
	switch s.do {
	case open:
		// As slots.open and openLate have it: all are to have posted the round depth-2 before, and a little more.
		if need := round - (p.depth - 2); c.seen < need {
			need += p.depth / 4
			for r := range p.n {
				if need >= 0 && r != me && !p.join(me, r, need) {
					return false, nil
				}
			}
			c.seen = need
		}
		if need := round - (p.depth - 2); c.seen >= 0 {
			for r := range p.n { // what seen says must be so
				if then, ok := p.posted[r][c.seen]; !ok || r != me && c.before[r] < then[r] {
					return false, fmt.Errorf("round %d of rank %d counts as seen, and may not have been posted", c.seen, r)
				}
			}
		} else if need >= 0 {
			return false, fmt.Errorf("round %d is opened, and nothing has been seen", round)
		}
		for r, e := range p.read[me][round-p.depth] {
			if e > c.before[r] {
				return false, fmt.Errorf("the slot of round %d is written, and rank %d may still read it", round, r)
			}
		}
	case post:
		c.before[me] = c.events + 1
		p.posted[me][round] = slices.Clone(c.before)
	case await:
		if !p.join(me, s.rank, round) {
			return false, nil
		}
		if c.todo[c.at+1].do == take { // the last one, after which the code counts the round as seen
			c.seen = max(c.seen, round)
		}
	case take:
		then, ok := p.posted[s.rank][round]
		if s.rank != me && (!ok || c.before[s.rank] < then[s.rank]) {
			return false, fmt.Errorf("reads rank %d's slot of round %d, which may not have been posted", s.rank, round)
		}
		if p.read[s.rank][round] == nil {
			p.read[s.rank][round] = make([]int, p.n)
		}
		p.read[s.rank][round][me] = c.events + 1
		c.got = append(c.got, s.rank)
	case end:
		c.result = append(c.result, c.got)
		c.got = nil
		c.round++
	}
	c.events++
	c.at++
	return true, nil
}

// Whatever the order in which ranks run: no rank waits for ever; each result has each operand once, in rank order; no slot is
// written while a rank may read it (nor a segment of a ring, which follows the same rule), and none is read that may not have
// been written; what a rank takes as seen by all is; and each rank's flag, which has the hash of its call, is awaited by another
// rank in each call.
func TestPatternHolds(t *testing.T) {
	const depth, calls = 8, 20 // no Comm has fewer slots; all slots are used more than once
	require.EqualValues(t, depth, tuning.SlotDepth(1024))
	for _, n := range []int{3, 4, 5, 6, 7, 8, 12, 16, 17, 33, 64, 128} {
		want := make([]int, n)
		for r := range want {
			want[r] = r
		}
		p := newProof(n, depth, calls)
		require.NoError(t, p.run(), "%d ranks", n)
		awaited := make([]bool, n)
		for me, c := range p.ranks {
			require.Len(t, c.result, calls)
			for i, got := range c.result {
				require.Equal(t, want, got, "%d ranks: rank %d, call %d", n, me, i)
			}
			for _, s := range pattern(n, me) {
				awaited[s.rank] = awaited[s.rank] || s.do == await
			}
		}
		require.NotContains(t, awaited, false, "%d ranks: a flag is awaited by nobody", n)
	}
}

// The proof finds patterns that are wrong.
func TestProofFinds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		depth  int
		change func(p *proof)
		want   string
	}{
		{"a rank that does not wait for another", 8, func(p *proof) { p.drop(0, await, 1) }, "may not have been posted"},
		{"a rank that does not post", 8, func(p *proof) { p.drop(2, post, 2) }, "may not have been posted"},
		{"slots that are used again too soon", 1, func(*proof) {}, "waits for ever"},
		{"slots that are not waited for", 2, func(p *proof) {
			for i := range p.ranks {
				p.ranks[i].seen = 1 << 20
			}
		}, "seen"},
	} {
		p := newProof(4, tc.depth, 6)
		tc.change(p)
		assert.ErrorContains(t, p.run(), tc.want, tc.name)
	}
	require.NoError(t, newProof(4, 8, 6).run())
}

// drop takes the first such step from a rank.
func (p *proof) drop(me int, do action, rank int) {
	c := &p.ranks[me]
	i := slices.IndexFunc(c.todo, func(s step) bool { return s.do == do && s.rank == rank })
	c.todo = slices.Delete(c.todo, i, i+1)
}

// The code waits for the flags that the pattern names, and for no others: a rank whose others have all posted returns, and
// one of whose others a single post is missing waits if the pattern says so.
func TestRanksFollowPattern(t *testing.T) {
	for _, kind := range []call.Kind{call.AllReduce, call.Barrier} {
		for _, n := range []int{3, 4, 7} {
			for me := range n {
				for lacks := range n {
					waits := slices.Contains(pattern(n, me), step{await, lacks}) // but none for itself
					all := ranksOf(t, n, byDirect)
					k := callOf(kind, -1, 1, make([]int32, 1), []int32{1})
					enter(all[me], k)
					first := all[me].rank.Order.Round + 1
					for r := range n {
						if r != me && r != lacks {
							all[r].slots.post(k, first)
						}
					}
					fault := all[me].RunLocal(ended(t), k)
					require.Equal(t, waits, fault != nil, "%v, %d ranks: rank %d without rank %d: %v", kind, n, me, lacks, fault)
					if !waits {
						require.Equal(t, first, all[me].rank.Order.Round)
						require.Equal(t, first, all[me].slots.seen)
					}
				}
			}
		}
	}
}
