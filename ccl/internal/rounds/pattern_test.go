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

// The forms of small calls as data: what each rank opens, posts, awaits and reads, in which order. TestPatternsHold proves them,
// TestRanksFollowPatterns holds the code against them, and the simulation gives them times.

type action uint8

const (
	open   action = iota // a round: it may wait until the slot is free
	post                 // the round
	await                // rank's post of the round
	gather               // rank's operands from its slot of the round, into the own slot of it
	take                 // rank's operands, or result, from its slot of the round
	end
)

// step is one action of a rank. Rounds are counted from the first of the call.
type step struct {
	do    action
	rank  int
	round int
}

// pattern is what rank me of n does in a call of that form.
func pattern(form tuning.Form, n, me int) (list []step) {
	add := func(do action, rank, round int) { list = append(list, step{do, rank, round}) }
	add(open, me, 0)
	m := form.Group
	if m == 0 {
		add(post, me, 0)
		for i := 1; i < n; i++ {
			add(await, (me+i)%n, 0)
		}
		for r := range n {
			add(take, r, 0)
		}
		return list
	}
	lead := me - me%m
	leads := me == lead
	if leads {
		for r := lead + 1; r < min(lead+m, n); r++ {
			add(await, r, 0)
			add(gather, r, 0)
		}
	}
	add(post, me, 0)
	if leads || !form.Tree {
		for i, g := 1, (n+m-1)/m; i <= g; i++ {
			if other := (lead/m + i) % g * m; other != me {
				add(await, other, 0)
			}
		}
		for r := 0; r < n; r += m {
			add(take, r, 0)
		}
	}
	if form.Tree {
		add(open, me, 1)
		add(post, me, 1)
		if !leads {
			add(await, lead, 1)
			add(take, lead, 1)
		}
	}
	return list
}

// proof plays calls of several forms one after another, among n ranks with slots of some depth, and follows which events
// precede which, whatever the order in which the ranks run: an event precedes what its rank does later, and a post precedes
// what a rank does that has awaited it.
type proof struct {
	n, depth int
	ranks    []prover
	posted   []map[int][]int // by rank and round, how far each rank had come before that post
	read     []map[int][]int // by rank and round, after how many of its events each rank had last read that slot
	holds    []map[int][]int // by rank and round, whose operands lie in that slot
}

type prover struct {
	todo   []step
	base   []int // of each step, the round that the call's first is
	result [][]int
	at     int
	call   int
	events int
	before []int // of each rank, how many of its events precede this rank's next
	seen   int
	got    []int
	round  int
}

func newProof(n, depth int, forms []tuning.Form) *proof {
	p := &proof{n: n, depth: depth, ranks: make([]prover, n)}
	for _, to := range []*[]map[int][]int{&p.posted, &p.read, &p.holds} {
		*to = make([]map[int][]int, n)
		for r := range *to {
			(*to)[r] = map[int][]int{}
		}
	}
	for me := range p.ranks {
		c := &p.ranks[me]
		c.before, c.seen = make([]int, n), -1
		base := 0
		for _, form := range forms {
			list := pattern(form, n, me)
			c.todo = append(c.todo, list...)
			c.todo = append(c.todo, step{do: end})
			for range len(list) + 1 {
				c.base = append(c.base, base)
			}
			base++
			if form.Tree {
				base++
			}
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
					return fmt.Errorf("rank %d, call %d: %w", me, p.ranks[me].call, err)
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
			return fmt.Errorf("rank %d waits for ever in call %d: %+v", me, c.call, c.todo[c.at])
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
	s := c.todo[c.at]
	round := c.base[c.at] + s.round
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
		if c.round = round; s.round == 0 {
			p.holds[me][round] = []int{me}
		} else {
			p.holds[me][round] = c.got // where it has a result
		}
	case post:
		c.before[me] = c.events + 1
		p.posted[me][round] = slices.Clone(c.before)
	case await:
		if !p.join(me, s.rank, round) {
			return false, nil
		}
		if s.round == 0 && c.awaitsLast() {
			c.seen = max(c.seen, round)
		} else if s.round == 1 {
			c.seen = max(c.seen, round-1)
		}
	case gather, take:
		then, ok := p.posted[s.rank][round]
		if s.rank != me && (!ok || c.before[s.rank] < then[s.rank]) {
			return false, fmt.Errorf("reads rank %d's slot of round %d, which may not have been posted", s.rank, round)
		}
		if p.read[s.rank][round] == nil {
			p.read[s.rank][round] = make([]int, p.n)
		}
		p.read[s.rank][round][me] = c.events + 1
		if s.do == gather {
			p.holds[me][round] = append(p.holds[me][round], p.holds[s.rank][round]...)
		} else {
			c.got = append(c.got, p.holds[s.rank][round]...)
		}
	case end:
		c.result = append(c.result, c.got)
		c.got = nil
		c.call++
	}
	c.events++
	c.at++
	return true, nil
}

// awaitsLast reports whether the await under way is the last one that the code counts as having seen all.
func (c *prover) awaitsLast() bool {
	next := c.todo[c.at+1].do
	return next == take
}

// forms are all that n ranks can have.
func forms(n int, most int) []tuning.Form {
	list := []tuning.Form{tuning.Flat}
	for m := 2; m < min(n, most+1); m++ {
		list = append(list, tuning.Form{Group: m}, tuning.Form{Group: m, Tree: true})
	}
	return list
}

// Whatever the order in which ranks run: no rank waits for ever; each result has each operand once, in rank order; no slot is
// written while a rank may read it (nor a segment of a ring, which follows the same rule), and none is read that may not have been written; what a rank takes as seen by all is; and
// each rank's flag, which has the hash of its call, is awaited by another rank in each call.
func TestPatternsHold(t *testing.T) {
	const depth = 8 // no Comm has fewer slots
	require.EqualValues(t, depth, tuning.SlotDepth(1024))
	sizes := []int{3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 24, 31, 32, 33, 48, 64, 104, 128}
	if testing.Short() {
		sizes = []int{3, 4, 5, 6, 7, 8, 12, 13, 16, 17, 33}
	}
	for _, n := range sizes {
		want := make([]int, n)
		for r := range want {
			want[r] = r
		}
		for _, f := range forms(n, 16) {
			// Calls of this form and flat ones in turn, and many of this form: all slots are used more than once.
			calls := []tuning.Form{f, f, tuning.Flat, f, f, f, tuning.Flat, tuning.Flat, f, f, f, f}
			p := newProof(n, depth, calls)
			require.NoError(t, p.run(), "%d ranks, %+v", n, f)
			for me, c := range p.ranks {
				require.Len(t, c.result, len(calls))
				for i, got := range c.result {
					require.Equal(t, want, got, "%d ranks, %+v: rank %d, call %d", n, calls[i], me, i)
				}
			}
			awaited := make([]bool, n)
			for me := range n {
				for _, s := range pattern(f, n, me) {
					if s.do == await && s.round == 0 {
						awaited[s.rank] = true
					}
				}
			}
			require.NotContains(t, awaited, false, "%d ranks, %+v: a flag is awaited by nobody", n, f)
		}
	}
}

// The proof finds patterns that are wrong.
func TestProofFinds(t *testing.T) {
	tree := tuning.Form{Group: 2, Tree: true}
	calls := []tuning.Form{tree, tree, tree, tree, tree, tree}
	for _, tc := range []struct {
		name   string
		depth  int
		change func(p *proof)
		want   string
	}{
		{"a leader that does not wait for its group", 8, func(p *proof) { p.drop(0, await, 1) }, "may not have been posted"},
		{"a member that does not wait for its leader", 8, func(p *proof) { p.drop(1, await, 0) }, "may not have been posted"},
		{"a leader that does not post", 8, func(p *proof) { p.drop(2, post, 2) }, "may not have been posted"},
		{"slots that are used again too soon", 1, func(*proof) {}, "waits for ever"},
		{"slots that are not waited for", 2, func(p *proof) {
			for i := range p.ranks {
				p.ranks[i].seen = 1 << 20
			}
		}, "seen"},
	} {
		p := newProof(4, tc.depth, calls)
		tc.change(p)
		assert.ErrorContains(t, p.run(), tc.want, tc.name)
	}
	p := newProof(4, 8, calls)
	require.NoError(t, p.run())
}

// drop takes the first such step from a rank.
func (p *proof) drop(me int, do action, rank int) {
	c := &p.ranks[me]
	i := slices.IndexFunc(c.todo, func(s step) bool { return s.do == do && s.rank == rank })
	c.todo, c.base = slices.Delete(c.todo, i, i+1), slices.Delete(c.base, i, i+1)
}

// inForm has all ranks make small calls in that form.
func inForm(all []*Team, f tuning.Form) {
	if f.Group > 0 {
		f.Most = all[0].Local.Inline / f.Group
	}
	for _, c := range all {
		c.Local.Form = f
	}
}

// The code waits for the flags that the pattern names, and for no others: a rank whose others have all posted returns, and
// one of whose others a single post is missing waits if the pattern says so.
func TestRanksFollowPatterns(t *testing.T) {
	for _, kind := range []call.Kind{call.AllReduce, call.Barrier} {
		sizes := []int{3, 5, 8, 10}
		if testing.Short() {
			sizes = []int{3, 4, 7}
		}
		for _, n := range sizes {
			for _, f := range forms(n, 4) {
				rounds := 1
				if f.Tree {
					rounds = 2
				}
				for me := range n {
					for lacks := range n {
						for lacking := range rounds {
							if lacks == me {
								continue
							}
							waits := slices.Contains(pattern(f, n, me), step{await, lacks, lacking})
							all := ranksOf(t, n, byDirect)
							inForm(all, f)
							k := callOf(kind, -1, 1, make([]int32, 1), []int32{1})
							enter(all[me], k)
							first := all[me].Round + 1
							for r := range n {
								for round := range rounds {
									if r != me && (r != lacks || round != lacking) {
										all[r].post(k, first+uint32(round))
									}
								}
							}
							fault := all[me].RunLocal(ended(t), k)
							require.Equal(t, waits, fault != nil, "%v, %d ranks, %+v: rank %d without rank %d's round %d: %v", kind, n, f, me, lacks, lacking, fault)
							if !waits {
								require.Equal(t, first+uint32(rounds)-1, all[me].Round)
								require.Equal(t, first, all[me].seen)
							}
						}
					}
				}
			}
		}
	}
}
