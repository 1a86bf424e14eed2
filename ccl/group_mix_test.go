package ccl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
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
	value := func(r, call, i int) int32 { return int32(r*100_000 + call*1000 + i) }
	vector := func(r, call, count int) []int32 {
		v := make([]int32, count)
		for i := range v {
			v[i] = value(r, call, i)
		}
		return v
	}
	type made struct {
		issue func(g ccl.Queue)
		got   []int32
		want  []int32
		what  string
	}
	var collectives, messages []made
	kinds := []string{"AllReduce", "Reduce", "Broadcast", "AllGather", "Scatter"}
	kind, root := "", 0
	for k := range 2 + shared.IntN(5) {
		if k == 0 || shared.IntN(3) == 0 { // most are like the one before: they are fused
			kind, root = kinds[shared.IntN(len(kinds))], shared.IntN(n)
		}
		count := 1 + shared.IntN(50)
		m := made{what: fmt.Sprintf("group %d, collective %d, %s of %d, root %d", i, k, kind, count, root)}
		src, root := vector(me, k, count), root
		switch kind {
		case "AllReduce", "Reduce":
			m.got, m.want = make([]int32, count), make([]int32, count)
			for r := range n {
				for j := range m.want {
					m.want[j] += value(r, k, j)
				}
			}
			if m.issue = func(g ccl.Queue) { g.AllReduce(ccl.BufOf(m.got), ccl.BufOf(src), ccl.Sum) }; kind == "Reduce" {
				if me != root {
					m.got, m.want = nil, nil
				}
				m.issue = func(g ccl.Queue) { g.Reduce(ccl.BufOf(m.got), ccl.BufOf(src), ccl.Sum, root) }
			}
		case "Broadcast":
			m.got, m.want = make([]int32, count), vector(root, k, count)
			if me == root {
				copy(m.got, m.want)
			}
			m.issue = func(g ccl.Queue) { g.Broadcast(ccl.BufOf(m.got), root) }
		case "AllGather":
			m.got = make([]int32, n*count)
			for r := range n {
				m.want = append(m.want, vector(r, k, count)...)
			}
			m.issue = func(g ccl.Queue) { g.AllGather(ccl.BufOf(m.got), ccl.BufOf(src)) }
		case "Scatter":
			m.got, m.want = make([]int32, count), vector(root, k, n*count)[me*count:][:count]
			src = vector(root, k, n*count)
			m.issue = func(g ccl.Queue) { g.Scatter(ccl.BufOf(m.got), ccl.BufOf(src), root) }
		}
		collectives = append(collectives, m)
	}
	for k := range shared.IntN(5) {
		from := shared.IntN(n)
		to, count := (from+1+shared.IntN(n-1))%n, 1+shared.IntN(100_000)
		k += 100
		m := made{what: fmt.Sprintf("group %d, message of %d from %d to %d", i, count, from, to)}
		switch me {
		case from:
			src := vector(from, k, count)
			m.issue = func(g ccl.Queue) { g.Send(ccl.BufOf(src), to) }
		case to:
			m.got, m.want = make([]int32, count), vector(from, k, count)
			m.issue = func(g ccl.Queue) { g.Recv(ccl.BufOf(m.got), from) }
		default:
			continue
		}
		messages = append(messages, m)
	}
	var all []made
	for a, b := collectives, messages; len(a)+len(b) > 0; { // each in its order
		if len(b) > 0 && own.IntN(len(a)+len(b)) < len(b) {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	err := q.Group(func(g ccl.Queue) error {
		for _, m := range all {
			m.issue(g)
		}
		return nil
	}).Wait(t.Context())
	require.NoError(t, err, "group %d", i)
	for _, m := range all {
		require.Equal(t, m.want, m.got, m.what)
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
