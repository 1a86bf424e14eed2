package ccl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Ranks make groups of the same collectives, in which each has messages of its own, at places of its own: what is fused follows
// from the collectives alone.
func TestGroupsWithOtherMessages(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, hosts := range []int{1, 2} {
			for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict, ccl.CheckOff} {
				t.Run(fmt.Sprintf("%d ranks, %d hosts, check %d", n, hosts, check), func(t *testing.T) {
					groups := 60
					if testing.Short() {
						groups = 20
					}
					ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
						shared, own := rand.New(rand.NewPCG(uint64(n), 1)), rand.New(rand.NewPCG(uint64(c.Rank()), 2))
						q := c.On(ccl.NewHostStream())
						for i := range groups {
							mixedGroup(t, c, q, shared, own, i)
						}
					}, ccltest.Hosts(hosts), ccltest.With(ccl.Options{Check: check}))
				})
			}
		}
	}
}

// mixedGroup makes group i. shared is the same on all ranks; own is this rank's.
func mixedGroup(t testing.TB, c *ccl.Comm, q ccl.Queue, shared, own *rand.Rand, i int) {
	n, me := c.Size(), c.Rank()
	type part struct {
		what  string
		issue func(g ccl.Queue)
		check func() error
	}
	var collectives, messages []part
	var s shape
	var e element
	for k := range 2 + shared.IntN(5) {
		if k == 0 || shared.IntN(3) == 0 { // most are like the one before: they are fused
			s = shape{kind: kinds[shared.IntN(slices.Index(kinds, ccl.KindSend))], op: ccl.Op(shared.IntN(int(ccl.Avg))), root: shared.IntN(n)}
			e = elements[shared.IntN(len(elements))]
		}
		if s.count, s.number = shared.IntN(50), uint64(100*i+k); shared.IntN(20) == 0 {
			s.count = 1 << 15 // too large for that
		}
		s.uneven(n)
		p := part{what: fmt.Sprintf("%v of %v", s, e.Type())}
		p.issue, p.check = e.part(c, s)
		collectives = append(collectives, p)
	}
	for k := range shared.IntN(5) {
		from := shared.IntN(n)
		to, count := (from+1+shared.IntN(n-1))%n, 1+shared.IntN(100_000)
		m := integer[int32]().input(&shape{number: uint64(100*i + 50 + k)}, from, 0, count)
		p := part{what: fmt.Sprintf("message of %d from %d to %d", count, from, to), check: func() error { return nil }}
		switch me {
		case from:
			p.issue = func(g ccl.Queue) { g.Send(ccl.BufOf(m), to) }
		case to:
			got := make([]int32, count)
			p.issue = func(g ccl.Queue) { g.Recv(ccl.BufOf(got), from) }
			p.check = func() error { return differences(got, m) }
		default:
			continue
		}
		messages = append(messages, p)
	}
	var all []part
	for a, b := collectives, messages; len(a)+len(b) > 0; { // each in its order
		if len(b) > 0 && own.IntN(len(a)+len(b)) < len(b) {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	err := q.Group(func(g ccl.Queue) error {
		for _, p := range all {
			p.issue(g)
		}
		return nil
	}).Wait(t.Context())
	require.NoError(t, err, "group %d", i)
	for _, p := range all {
		require.NoError(t, p.check(), "group %d, %s", i, p.what)
	}
}

// The messages of a Group go before its collectives. A rank that waits for a peer which does not group says so in the name of the
// message.
func TestGroupNamesTheMessage(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		q, x, message := c.On(nil), []int32{1}, make([]byte, 4<<20)
		if c.Rank() == 1 {
			require.ErrorIs(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum), ccl.ErrTimeout)
			return
		}
		err := q.Group(func(g ccl.Queue) error {
			g.AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Sum)
			g.Send(ccl.BufOf(message), 1)
			return nil
		}).Wait(ctx)
		require.ErrorIs(t, err, ccl.ErrTimeout)
		var e *ccl.Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "Send", e.Op)
		require.Equal(t, ccl.KindSend, e.Mine.Kind)
		require.EqualValues(t, len(message), e.Mine.Count)
	}, ccltest.With(ccl.Options{Timeout: 500 * time.Millisecond}))
}
