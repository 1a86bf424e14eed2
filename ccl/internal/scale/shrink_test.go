package scale

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/shrink"
	"github.com/goccl/goccl/internal/agree"
)

// agreement is a Shrink as its lead has it: the lead is real, and so is one member, whose answers
// every member gives.
type agreement struct {
	net    network
	random *rand.Rand
	lead   *agree.Party
	member *agree.Party
	lost   map[int]bool
	n      int
}

// agreed is what a Shrink comes to.
type agreed struct {
	done     time.Duration // until the last member knows that all know
	messages int
	sent     int           // bytes out of the lead
	computed time.Duration // what the lead's own code takes, on this machine
}

// newAgreement is a Shrink of n ranks, of which some are lost. The first rank is not, nor the last,
// which is the member.
func newAgreement(n, lost int, net network) *agreement {
	a := &agreement{net: net, random: rand.New(rand.NewPCG(3, 3)), lost: map[int]bool{}, n: n}
	for _, r := range a.random.Perm(n - 2)[:lost] {
		a.lost[r+1] = true
	}
	nothing := func(uint64, []int32) error { return nil }
	a.lead = agree.New(0, n, nothing)
	a.member = agree.New(n-1, n, nothing)
	return a
}

// run goes through the agreement in the order in which messages come to the lead.
func (a *agreement) run(t *testing.T) (r agreed) {
	gone := func(rank int) bool { return a.lost[rank] }
	a.member.Look(gone)
	began := time.Now()
	a.lead.Look(gone)
	r.computed += time.Since(began)
	var c calendar
	say := a.member.Post // what every member says now
	a.member.Post = nil
	now := time.Duration(0)
	require.Len(t, say, 1)
	require.Equal(t, 0, say[0].To)
	for rank := 1; rank < a.n; rank++ {
		if !a.lost[rank] {
			c.add(message{at: a.net.wire(rank/perHost, 0, shrink.Bytes(&say[0].Notice), a.random), from: int32(rank)})
		}
	}
	for a.lead.End == agree.Open {
		m, ok := c.next()
		require.True(t, ok, "the lead waits for nobody")
		r.messages++
		now = max(now, m.at) + a.net.handle
		n := say[0].Notice
		began := time.Now()
		a.lead.Hear(int(m.from), n)
		r.computed += time.Since(began)
		if len(a.lead.Post) == 1 && a.lead.Post[0].Kind == agree.Alive { // to one that has come
			r.messages++
			r.sent += shrink.Bytes(&a.lead.Post[0].Notice)
			a.lead.Post = a.lead.Post[:0]
			continue
		}
		if len(a.lead.Post) == 0 {
			continue
		}
		// A phase is over. All members get the same, one after the other through one link, and
		// answer alike.
		var answers []agree.Letter
		var kind agree.Kind
		var bytes int
		answer := agree.Notice{Kind: agree.Ready} // which has as many bytes as any
		for i := range a.lead.Post {
			l := &a.lead.Post[i]
			if l.Kind == agree.Alive {
				r.messages++
				r.sent += shrink.Bytes(&l.Notice)
				continue
			}
			if l.Kind != kind { // all get the same
				kind, bytes = l.Kind, shrink.Bytes(&l.Notice)
			}
			r.messages++
			r.sent += bytes
			now += max(a.net.handle, time.Duration(float64(bytes)/a.net.perSecond*1e9))
			there := now + a.net.wire(0, l.To/perHost, 0, a.random)
			if l.To == a.n-1 {
				a.member.Hear(0, l.Notice)
				answers, a.member.Post = a.member.Post, nil
			}
			if l.Kind == agree.Done {
				r.done = max(r.done, there+a.net.handle)
				continue
			}
			c.add(message{at: there + a.net.handle + a.net.wire(l.To/perHost, 0, shrink.Bytes(&answer), a.random), from: int32(l.To)})
		}
		a.lead.Post = a.lead.Post[:0]
		if a.lead.End == agree.Open {
			require.Len(t, answers, 1)
		}
		say = answers
	}
	require.Equal(t, agree.Agreed, a.lead.End)
	require.Equal(t, agree.Agreed, a.member.End)
	require.Len(t, a.lead.Ranks, a.n-len(a.lost))
	require.Equal(t, a.lead.Ranks, a.member.Ranks)
	return r
}

// TestShrink has all ranks of a job but one, or but several, agree on those that are left.
func TestShrink(t *testing.T) {
	n := *hosts * perHost
	t.Log("| ranks | ranks lost | messages | over after | messages | out of the lead | connections of the lead | the lead computes |")
	for _, k := range []int{1, 100} {
		for _, late := range []bool{false, true} {
			net, name := slingshot, "in time"
			if late {
				net, name = net.late(), "1 % late by 1 s"
			}
			r := newAgreement(n, k, net).run(t)
			t.Logf("| %d | %d | %s | %v | %d | %.1f GB | %d | %v |", n, k, name, r.done.Round(time.Millisecond),
				r.messages, float64(r.sent)/1e9, n-perHost, r.computed.Round(time.Millisecond))
			require.Equal(t, 7*(n-k-1), r.messages, "three round trips, a word that the lead has come")
			require.GreaterOrEqual(t, r.done, 6*slingshot.near)
		}
	}
}
