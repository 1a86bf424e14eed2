package plane

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
)

// The call of rank 0, whose time is over, names ranks of its Comm that are late and wait for nobody. Where those wait themselves, in
// another Comm, for a rank that is none of its own, it blames nobody, and says which that is.
func TestUnfinished(t *testing.T) {
	waits := func(comm uint64, world, on int32) status.Status {
		return status.Status{Comm: comm, Rank: world, World: world, For: on, Size: 8, Doing: status.Waits}
	}
	named := waits(3, 14, 16) // ranks of the world from 8 on are no members
	named.SetName("tp")
	for _, tc := range []struct {
		name  string
		told  []status.Status
		late  []int // in the call
		peer  int
		named []int
		err   string
	}{
		{"nothing is known of those it waits for", nil, []int{1, 2}, 1, []int{1, 2}, "too late"},
		{"it waits for nobody", nil, nil, -1, nil, "on rank 0: too late"},
		{"one of two waits for the other", []status.Status{waits(2, 1, 2)}, []int{1, 2}, 2, []int{2}, "too late"},
		{"both wait for a third", []status.Status{waits(2, 1, 3), waits(3, 2, 3)}, []int{1, 2, 3}, 3, []int{3}, "too late"},
		{"both wait for one that has come", []status.Status{waits(2, 1, 3), waits(3, 2, 3)}, []int{1, 2}, 1, []int{1, 2}, "too late"},
		{"a rank that is none of its own is late", []status.Status{waits(2, 1, 14), named}, []int{1}, -1, []int{1}, "world rank 16 is late in tp: too late"},
		{"they wait for each other", []status.Status{waits(2, 1, 2), waits(3, 2, 1)}, []int{1, 2}, 1, []int{1, 2}, "too late"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := ranks(t, 8, Options{})
			c := all[0]
			c.Site.Here.Mine = 9 // the others live in other processes
			c.Site.Here.Procs, c.Site.Job.World.Topo = make([]int, 20), algo.Flat(20)
			for r, o := range all {
				if !slices.Contains(tc.late, r) {
					enter(o, call.Barrier)
				}
			}
			for _, st := range tc.told {
				c.Site.Job.Statuses.Keep(&st, c.Site.Job.Clock())
			}
			f := Unfinished(c, context.DeadlineExceeded, errors.New("too late"))
			assert.Equal(t, call.Timeout, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.Equal(t, tc.named, f.Missing)
			assert.EqualError(t, f.Err, tc.err)
			f = Unfinished(c, context.Canceled, errors.New("no more"))
			assert.Equal(t, []any{call.Canceled, 0}, []any{f.Code, f.Peer}, "whoever is late")
		})
	}
}

// A rank that gives up in a circle of waits says so, and blames nobody; a rank beside the circle does not.
func TestUnfinishedInADeadlock(t *testing.T) {
	recv := func(rank, from int32) status.Status {
		s := status.Status{Comm: group.WorldID, Rank: rank, World: rank, For: -1, Peer: from, To: -1, Size: 4, Doing: status.Waits,
			Call: call.Record{Kind: call.Recv, Place: 3, Seq: 7, Root: from}}
		s.SetName("tp")
		return s
	}
	const circle = "deadlock: rank 0 waits for 2 in tp #7, 2 for 1 in tp #7, 1 for 0 in tp #7, all in Recv: too late"
	for me, want := range []string{circle, circle, circle, "on rank 3: too late"} {
		c := ranks(t, 4, Options{})[me]
		for _, st := range []status.Status{recv(0, 2), recv(1, 0), recv(2, 1)} {
			c.Site.Job.Statuses.Keep(&st, c.Site.Job.Clock())
		}
		f := Unfinished(c, context.DeadlineExceeded, errors.New("too late"))
		require.EqualError(t, f.Err, want, "rank %d", me)
		require.Equal(t, -1, f.Peer)
		c.Site.Job.Statuses.Forget(group.WorldID)
	}
}

// What a rank says that is asked where it stands: of the Comm that it is asked of, and where it waits in others, also where one has failed
// since the call of the other began. With it come the ranks of its host that are behind.
func TestStands(t *testing.T) {
	all := ranks(t, 4, Options{})
	j := all[0].Site.Job
	q := question{comm: group.WorldID, calls: 1}
	for _, r := range []int{0, 1} {
		enter(all[r], call.Barrier)
	}
	sleeps(all[1], call.Barrier, 2, 0)
	a, here := stands(j, 1, &q)
	require.True(t, here)
	require.True(t, a.fits(&all[0].Group, 1, 4))
	require.False(t, a.fits(&all[0].Group, 0, 4), "it is another's")
	require.Len(t, a.all, 3)
	late, own := []int32{a.all[0].Rank, a.all[1].Rank}, a.all[2]
	require.Equal(t, []int32{2, 3}, late)
	require.Equal(t, []any{int32(1), status.Waits, int32(2), int32(2)}, []any{own.Rank, own.Doing, own.Peer, own.For})
	_, here = stands(j, 9, &q)
	require.False(t, here)

	q.comm = 77 // of which rank 1 is none: it waits elsewhere
	a, _ = stands(j, 1, &q)
	require.Len(t, a.all, 1)
	all[1].FailHere(&call.Fault{Code: call.Aborted})
	all[1].EndSleep()
	a, _ = stands(j, 1, &q)
	require.Empty(t, a.all, "the call of the one that asks has begun after that")
	q.lasted = int64(time.Hour)
	a, _ = stands(j, 1, &q)
	require.Len(t, a.all, 1)
	require.True(t, a.all[0].Failed)
}

func anAnswer() answer {
	s := status.Status{Comm: group.WorldID, Rank: 1, World: 1, Size: 4, Calls: 7, Peer: 2, To: -1, For: 2, Doing: status.Waits}
	s.SetName("tp")
	return answer{awaits: []int32{2, 3}, all: []status.Status{s, {Comm: group.WorldID, Rank: 2, World: 2, Size: 4, Peer: -1, To: -1, For: -1}}}
}

// An answer is read as it was said, and a question as it was asked.
func TestAnswer(t *testing.T) {
	a, q := anAnswer(), question{comm: 1<<63 | 5, calls: 1<<32 - 1, lasted: 12}
	back, err := answerOf(bytes.NewReader(a.encode()))
	require.NoError(t, err)
	require.Equal(t, a, back)
	require.Len(t, q.encode(), questionBytes)
	require.Equal(t, q, questionOf(q.encode()))
	g := group.New(group.WorldID, group.Members{Stride: 1}, algo.Flat(4), 0, group.Agreed{})
	require.True(t, back.fits(&g, 1, 4))
	for name, spoil := range map[string]func(a *answer){
		"it waits for a rank beyond":      func(a *answer) { a.awaits[0] = 4 },
		"a rank of the world beyond":      func(a *answer) { a.all[0].World = 4 },
		"for one beyond":                  func(a *answer) { a.all[0].For = 4 },
		"a rank that is another's":        func(a *answer) { a.all[1].World = 3 },
		"nothing of the one that answers": func(a *answer) { a.all = a.all[1:] },
	} {
		a := anAnswer()
		spoil(&a)
		require.False(t, a.fits(&g, 1, 4), name)
	}
	for name, spoil := range map[string]func(b []byte) []byte{
		"too many ranks":  func(b []byte) []byte { b[0] = 17; return b },
		"many statuses":   func(b []byte) []byte { b[1] = mostSaid + 1; return b },
		"a negative rank": func(b []byte) []byte { b[5] = 0x80; return b },
		"cut":             func(b []byte) []byte { return b[:len(b)-1] },
		"nothing":         func(b []byte) []byte { return nil },
		"a bad status":    func(b []byte) []byte { b[2+8+56] = 3; return b },
	} {
		a := anAnswer()
		_, err := answerOf(bytes.NewReader(spoil(a.encode())))
		require.Error(t, err, name)
	}
}

func FuzzAnswer(f *testing.F) {
	a := anAnswer()
	f.Add(a.encode())
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	g := group.New(group.WorldID, group.Members{Stride: 1}, algo.Flat(4), 0, group.Agreed{})
	f.Fuzz(func(t *testing.T, in []byte) {
		a, err := answerOf(bytes.NewReader(in))
		if err != nil {
			return
		}
		if again := a.encode(); !bytes.Equal(again, in[:len(again)]) {
			t.Fatalf("%x was read as %+v, which is %x", in, a, again)
		}
		a.fits(&g, 1, 4)
	})
}

// Whom a rank asks first: in a large Comm those alone that it waits for, whatever has been told of others, and in any a few.
func TestAsksFew(t *testing.T) {
	const n = 1000
	for _, tc := range []struct {
		size  int
		peers []int
		want  []int32
	}{
		{n, []int{1, 512}, []int32{1, 512}},
		{n, nil, []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		{fewRanks, []int{1, 32}, []int32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		{4, []int{1}, []int32{1, 2, 3}},
	} {
		j := EnterJob(t.Name(), 0)
		j.World.Topo, j.Net.TCP = algo.Blocks(tc.size, 1), new(tcp.Node)
		s := j.Site(0)
		s.Here.Procs, s.Here.Host = make([]int, 1), PrivateHost()
		c := &Member{}
		c.Init(s, group.WorldID, group.Members{Stride: 1}, j.World.Topo, 0, regionOn(t, s, 1), Options{})
		enter(c, call.Barrier)
		for r := range int32(tc.size) {
			j.Statuses.Keep(&status.Status{Comm: group.WorldID, Rank: r, World: r, Size: int32(tc.size), Peer: -1, To: -1, For: -1}, 0)
		}
		search := search{c: c, peers: tc.peers, asking: true}
		search.look()
		require.Equal(t, tc.want, search.found.ask, "of %d ranks, by one that waits for %v", tc.size, tc.peers)
		require.Empty(t, search.found.late, "nobody has answered")
		c.Fate.cancel()
		j.Net.TCP = nil
		j.Leave()
	}
}

// A rank of this process that has left its Comms is not asked: the memory of the host says that it is late.
func TestUnfinishedBesideOneThatHasLeft(t *testing.T) {
	all := ranks(t, 3, Options{})
	for _, r := range []int{0, 2} {
		enter(all[r], call.Barrier)
	}
	all[0].Site.Job.Remove(all[1])
	f := Unfinished(all[0], context.DeadlineExceeded, errors.New("too late"))
	require.Equal(t, []any{1, []int{1}}, []any{f.Peer, f.Missing})
	require.EqualError(t, f.Err, "too late")
}
