package agree

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var none = Asks{Make: func(uint64, []int32) error { return nil }}

// rank1 is rank 1 of 3, which is ready for what rank 0 has proposed.
func rank1(t *testing.T, gone func(int) bool) *Party {
	p := New(1, 3, none)
	p.Look(gone)
	require.Equal(t, 0, p.Lead())
	assert.True(t, p.MayQuit())
	p.Hear(0, Notice{Kind: Propose, Ballot: 1 << 32, Ranks: []int32{0, 1, 2}})
	assert.False(t, p.MayQuit(), "the others may have decided")
	return p
}

func lost(ranks ...int) func(int) bool {
	return func(r int) bool {
		for _, x := range ranks {
			if x == r {
				return true
			}
		}
		return false
	}
}

// Three ranks agree, with letters in the order in which they are posted.
func TestAgreement(t *testing.T) {
	var all []*Party
	for r := range 3 {
		all = append(all, New(r, 3, none))
		all[r].Look(lost())
	}
	for moved := true; moved; {
		moved = false
		for r, p := range all {
			post := p.Post
			p.Post = nil
			for _, l := range post {
				moved = true
				if all[l.To].Waits(r) {
					all[l.To].Hear(r, l.Notice)
				}
			}
		}
	}
	for _, p := range all {
		assert.Equal(t, Agreed, p.End)
		assert.Equal(t, []int32{0, 1, 2}, p.Ranks)
		assert.Equal(t, p.Ballot(), p.Made(), "what the decision needs was made before")
		assert.Equal(t, all[0].Ballot(), p.Ballot())
	}
}

// A rank that is ready and becomes the lead waits for no rank that has given up, and once it has heard all it may give up
// itself.
func TestReadyRankBecomesLead(t *testing.T) {
	p := rank1(t, lost())
	p.Look(lost(0))
	require.True(t, p.Leads())
	assert.False(t, p.MayQuit(), "rank 2 may have decided")
	q := p.Clone()
	q.Dropped(2)
	assert.Equal(t, GaveUp, q.End)
	assert.Equal(t, 2, q.Quitter)
	p.Hear(2, Notice{Kind: Here, Lead: 1})
	assert.Equal(t, []int32{1, 2}, p.Ranks)
	assert.True(t, p.MayQuit())
	p.Give()
	assert.Equal(t, Letter{2, Notice{Kind: Quit, Lead: 1}}, p.Post[len(p.Post)-1])
}

// Who gives up and is no member of the proposal ends nothing: the others may have decided without it.
func TestOneThatIsNoMemberGivesUp(t *testing.T) {
	p := New(1, 3, none)
	p.Look(lost())
	p.Hear(0, Notice{Kind: Propose, Ballot: 1 << 32, Ranks: []int32{0, 1}})
	p.Dropped(2)
	assert.Equal(t, Open, p.End)
	p.Look(lost(0))
	p.Hear(2, Notice{Kind: Quit})
	assert.Equal(t, Open, p.End)

	q := New(3, 4, none) // the same where it has become the lead
	q.Look(lost())
	q.Hear(0, Notice{Kind: Propose, Ballot: 1 << 32, Ranks: []int32{0, 2, 3}})
	q.Look(lost(0))
	q.Hear(1, Notice{Kind: Quit})
	assert.Equal(t, Open, q.End)
}

// A rank that was given up is told so, in whatever way it finds that the others have decided without it.
func TestGivenUp(t *testing.T) {
	for name, do := range map[string]func(p *Party){
		"the proposal is without it":    func(p *Party) { p.Hear(0, Notice{Kind: Propose, Ballot: 1 << 32, Ranks: []int32{0, 1}}) },
		"another is done":               func(p *Party) { p.Over(1) },
		"the lead is done":              func(p *Party) { p.Hear(0, Notice{Kind: Done, Ballot: 1 << 32}) },
		"the failure detector tells it": (*Party).Lost,
		"it leads, and another knows a decision": func(p *Party) {
			p.Look(lost(0))
			p.Look(lost(1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(2, 4, none)
			p.Look(lost())
			if do(p); p.Leads() {
				p.Hear(3, Notice{Kind: Here, Lead: 2, Ballot: 1 << 32, Ranks: []int32{0, 3}})
			}
			assert.Equal(t, Out, p.End)
		})
	}
}

// What is decided stays, whatever a lead says that does not know that it was given up.
func TestDecisionStays(t *testing.T) {
	p := New(3, 4, none)
	p.Look(lost(0))
	p.Hear(1, Notice{Kind: Propose, Lead: 1, Ballot: 2<<32 | 1, Ranks: []int32{1, 3}})
	p.Hear(1, Notice{Kind: Decide, Lead: 1, Ballot: 2<<32 | 1, Ranks: []int32{1, 3}})
	p.Look(lost(1))
	require.Equal(t, 2, p.Lead())
	p.Post = nil
	p.Hear(2, Notice{Kind: Decide, Lead: 2, Ballot: 1 << 32, Ranks: []int32{0, 1, 2, 3}})
	assert.Equal(t, []int32{1, 3}, p.Ranks)
	assert.Empty(t, p.Post)
	p.Look(lost(2))
	assert.Equal(t, Agreed, p.End)
}

func TestNoMemory(t *testing.T) {
	full := errors.New("full")
	p := New(0, 2, Asks{Make: func(uint64, []int32) error { return full }})
	p.Look(lost())
	p.Hear(1, Notice{Kind: Here})
	assert.Equal(t, GaveUp, p.End)
	assert.Equal(t, full, p.Failed)
	assert.Equal(t, Letter{1, Notice{Kind: Quit}}, p.Post[len(p.Post)-1])
}

// A lead of many ranks looks at each once in a phase, in whatever order they answer, and what an answer costs it does not grow
// with their number.
func TestLeadOfMany(t *testing.T) {
	const n = 1 << 14
	p := New(0, n, none)
	p.Look(lost(3))
	for _, phase := range []struct {
		asks   Kind
		answer Notice
	}{
		{Propose, Notice{Kind: Here}},
		{Decide, Notice{Kind: Ready, Ballot: 1 << 32}},
		{Done, Notice{Kind: Decided, Ballot: 1 << 32}},
	} {
		p.Post = make([]Letter, 0, 2*n)
		last := 5
		for r := n - 1; r > 0; r-- { // the cursor stays with the lowest
			if r != 3 && r != last {
				p.Hear(r, phase.answer)
			}
			require.NotEqual(t, phase.asks, lastKind(p), "rank %d is waited for", last)
		}
		p.Hear(2, phase.answer) // said twice
		require.Equal(t, []int{last}, p.Missing())
		require.Zero(t, testing.AllocsPerRun(10, func() {
			p.Post = p.Post[:0]
			p.Hear(n/2, phase.answer)
		}))
		p.Hear(last, phase.answer)
		require.Equal(t, phase.asks, lastKind(p))
	}
	require.Equal(t, Agreed, p.End)
	require.Len(t, p.Ranks, n-1)
}

// lastKind is what p has said last, 0 if it has said nothing.
func lastKind(p *Party) Kind {
	if len(p.Post) == 0 {
		return 0
	}
	return p.Post[len(p.Post)-1].Kind
}

// A rank that says anew, in the midst of a phase, that it has come is asked again: what was said to it may be lost. What it has
// answered before stays true.
func TestAskedAgain(t *testing.T) {
	p := New(0, 4, none)
	p.Look(lost())
	for r := 1; r < 4; r++ {
		p.Hear(r, Notice{Kind: Here})
	}
	ready := Notice{Kind: Ready, Ballot: 1 << 32}
	p.Hear(1, ready)
	p.Post = nil
	p.Hear(1, Notice{Kind: Here})
	p.Hear(2, Notice{Kind: Here})
	var asked []int
	for _, l := range p.Post {
		if l.Kind == Propose {
			asked = append(asked, l.To)
		}
	}
	require.Equal(t, []int{1, 2}, asked)
	require.Equal(t, []int{2, 3}, p.Missing())
	p.Hear(2, ready)
	p.Hear(3, ready)
	require.True(t, p.Decided)
}

// Which of the lost ranks have certainly ended is the lead's to say, and decided with the ranks: a lead that comes after it
// says the same, whatever it knows itself.
func TestEnded(t *testing.T) {
	lead := New(0, 5, none)
	lead.HasEnded = lost(3)
	lead.Look(lost(3, 4))
	lead.Hear(1, Notice{Kind: Here})
	lead.Hear(2, Notice{Kind: Here})
	lead.Hear(1, Notice{Kind: Ready, Ballot: lead.Ballot()})
	lead.Hear(2, Notice{Kind: Ready, Ballot: lead.Ballot()})
	require.True(t, lead.Decided)
	assert.Equal(t, []int32{3}, lead.Ended)
	decide := lead.Post[len(lead.Post)-1]
	require.Equal(t, Letter{2, Notice{Kind: Decide, Ballot: lead.Ballot(), Ranks: []int32{0, 1, 2}, Ended: []int32{3}}}, decide)

	one := New(1, 5, none)
	one.HasEnded = lost(0, 3, 4)
	two := New(2, 5, none)
	two.Look(lost(3))
	two.Hear(0, Notice{Kind: Propose, Ballot: decide.Ballot, Ranks: decide.Ranks})
	two.Hear(0, decide.Notice)
	assert.Equal(t, []int32{3}, two.Ended)
	one.Look(lost(0, 3, 4))
	require.True(t, one.Leads())
	two.Post = nil
	two.Look(lost(0, 3, 4))
	require.Len(t, two.Post, 1)
	require.Equal(t, 1, two.Post[0].To)
	one.Hear(2, two.Post[0].Notice)
	assert.True(t, one.Decided)
	assert.Equal(t, []int32{0, 1, 2}, one.Ranks)
	assert.Equal(t, []int32{3}, one.Ended, "and not what it knows by now")
}

// What a lead waits for is looked for once in each phase, and found however ranks answer and go.
func TestFirst(t *testing.T) {
	const n = 6
	p := New(0, n, none)
	p.Look(lost(1))
	first := func(want ...int) {
		t.Helper()
		require.Equal(t, want, p.Missing())
		require.Equal(t, want[0], p.First())
	}
	first(2, 3, 4, 5)
	p.Hear(4, Notice{Kind: Here})
	first(2, 3, 5)
	p.Hear(2, Notice{Kind: Here})
	first(3, 5)
	p.Look(lost(3))
	first(5)
	p.Hear(5, Notice{Kind: Here}) // all have come: the proposal
	first(2, 4, 5)
	p.Hear(5, Notice{Kind: Ready, Ballot: p.Ballot()})
	p.Hear(2, Notice{Kind: Ready, Ballot: p.Ballot()})
	first(4)
	p.Look(lost(2)) // which is no reason not to wait for rank 4, and then for a proposal without rank 2
	first(4)
	p.Hear(4, Notice{Kind: Ready, Ballot: p.Ballot()})
	first(4, 5)
	for p.End == Open {
		r := p.First()
		kind := Ready
		if p.Decided {
			kind = Decided
		}
		p.Hear(r, Notice{Kind: kind, Ballot: p.Ballot()})
	}
	require.Equal(t, Agreed, p.End)
	require.Equal(t, -1, p.First())
	require.Equal(t, []int32{0, 4, 5}, p.Ranks)

	member := New(2, n, none)
	require.Equal(t, -1, member.First())
	member.Look(lost(0))
	require.Equal(t, 1, member.First())
}

// A notice is the same as another only if all of it is.
func TestSame(t *testing.T) {
	ranks, ended := []int32{0, 1, 3}, []int32{2}
	n := Notice{Kind: Decide, Ballot: 7, Ranks: ranks, Ended: ended}
	again := n
	assert.True(t, n.Same(&again))
	assert.True(t, (&Notice{Kind: Done}).Same(&Notice{Kind: Done}))
	for _, o := range []Notice{
		{Kind: Decided, Ballot: 7, Ranks: ranks, Ended: ended},
		{Kind: Decide, Ballot: 8, Ranks: ranks, Ended: ended},
		{Kind: Decide, Ballot: 7, Ranks: ranks[:2], Ended: ended},
		{Kind: Decide, Ballot: 7, Ranks: ended, Ended: ended},
		{Kind: Decide, Ballot: 7, Ranks: ranks},
	} {
		assert.False(t, n.Same(&o), "%v", o)
	}
}
