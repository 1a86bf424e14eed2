package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/internal/op"
)

// A collective has its place in the order of collectives, and a hash of all of them so far.
func TestEnter(t *testing.T) {
	all := ranks(t, 3, Options{})
	var hashes [2][]uint32
	for r := range hashes {
		for i, kind := range []call.Kind{call.AllReduce, call.Barrier, call.AllReduce} {
			k := call.Call{Head: op.Head{Record: call.Record{Kind: kind, Count: 1, Root: -1}}}
			k.Seal()
			mixed := all[r].Order.Mixed(&k)
			all[r].Order.Enter(&k)
			require.EqualValues(t, i+1, k.Place)
			require.Equal(t, mixed, k.Hash)
			require.Equal(t, uint64(i+1)<<32|uint64(k.Hash), all[r].Share.Local.Entered(r).Load())
			require.Equal(t, kind, all[r].Order.Entered(0).Kind)
			hashes[r] = append(hashes[r], k.Hash)
		}
	}
	require.Equal(t, hashes[0], hashes[1])
	require.NotEqual(t, hashes[0][0], hashes[0][2], "the same call after others")
	require.Equal(t, []call.Kind{call.AllReduce, call.Barrier, call.AllReduce}, []call.Kind{all[0].Order.Entered(2).Kind, all[0].Order.Entered(1).Kind, all[0].Order.Entered(0).Kind})
	require.Equal(t, call.Record{}, all[0].Order.Entered(4), "before the first")
	require.Zero(t, all[2].Order.Entered(0).Kind, "it has made none")
}

// Where calls are not checked all hashes are 1, and a call inside another has that one's kind.
func TestEnterUnchecked(t *testing.T) {
	c := ranks(t, 2, Options{Agreed: group.Agreed{Unchecked: true}})[0]
	k := call.Call{Head: op.Head{Record: call.Record{Kind: call.AllGather}}, Inside: call.Split}
	k.Seal()
	require.EqualValues(t, 1, c.Order.Mixed(&k))
	c.Order.Enter(&k)
	require.EqualValues(t, 1, k.Hash)
	require.Equal(t, call.Split, c.Order.Entered(0).Kind)
}

// Of a mismatch a rank knows its own side only when it comes to the call: then the other is the one at fault.
func TestSide(t *testing.T) {
	theirs, other := call.Record{Place: 3, Hash: 7}, call.Record{Place: 3, Hash: 9}
	f := &call.Fault{Code: call.Mismatch, Peer: 1, Theirs: &theirs, OtherPeer: 2, Other: &other}
	g := &call.Fault{Code: call.Mismatch, Peer: 2, Theirs: &other, OtherPeer: 2}
	apart := *f
	apart.Apart = true
	for _, tc := range []struct {
		name  string
		place uint64
		hash  uint32
		want  *call.Fault
	}{
		{"another collective", 2, 7, &apart},
		{"its call is that of the other", 3, 9, f},
		{"its call is that of the one named", 3, 7, g},
	} {
		c := ranks(t, 3, Options{})[0]
		require.Equal(t, tc.want, c.Fate.Side(f, tc.place, tc.hash), tc.name)
		require.Equal(t, tc.want, c.Fate.Failure(), tc.name)
		require.Equal(t, tc.want, c.Fate.Side(f, 3, 7), "what the first call was told stands: %s", tc.name)
	}
	lost := &call.Fault{Code: call.RankLost, Peer: 1}
	require.Same(t, lost, ranks(t, 3, Options{})[0].Fate.Side(lost, 3, 7))
}

// A Comm whose counters begin elsewhere has posted all rounds before that, and no calls.
func TestBeginAt(t *testing.T) {
	const start = 1<<32 - 2
	c := ranks(t, 2, Options{})[0]
	c.Order.BeginAt(start)
	require.Equal(t, []uint64{start, start, start}, []uint64{uint64(c.Order.Start), uint64(c.Order.Round), c.Order.Calls})
	require.EqualValues(t, uint64(start)<<32, c.Share.Local.Entered(0).Load())
	require.Equal(t, uint32(start), c.Share.Local.Posted(0, start))
	require.Less(t, int32(c.Share.Local.Posted(0, start+1)-(start+1)), int32(0), "the next is to come")
	enter(c, call.Barrier)
	enter(c, call.Barrier)
	enter(c, call.Barrier)
	require.Equal(t, uint64(start+3), c.Order.Calls)
	require.EqualValues(t, uint32(1), c.Share.Local.Entered(0).Load()>>32, "in 32 bits they begin again")
	c.Order.BeginAt(0)
	require.Equal(t, uint64(start+3), c.Order.Calls, "0 is where they are")
}

// A call that has slept is no more at its end, nor what it has said to others; one that has not leaves its bell alone.
func TestEndCall(t *testing.T) {
	all := ranks(t, 2, Options{})
	c := all[0]
	k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier, Seq: 1}}}
	c.Current.Begin(k, 40, false)
	require.Equal(t, []any{int64(40), false, true}, []any{c.Current.Since(), c.Current.Slept(), c.Standing.InCall()})
	c.Current.InRounds(true)
	require.True(t, c.Current.lockstep)
	c.EndCall()
	require.False(t, c.Standing.InCall())

	c.Current.Begin(k, 50, false)
	require.False(t, c.Current.lockstep, "that was the last one")
	c.noteSleep(k, &Waiter{}, 1)
	c.Current.running = nil
	c.Share.Local.Waits(0).Store(1<<32 | 2)
	require.True(t, c.Current.Slept())
	_, asleep := c.Standing.Sleeping()
	require.True(t, asleep)
	c.EndCall()
	_, asleep = c.Standing.Sleeping()
	require.False(t, asleep)
	require.Zero(t, c.Share.Local.Waits(0).Load())
	require.False(t, c.Standing.InCall())
	require.Zero(t, testing.AllocsPerRun(10, func() {
		c.Current.Begin(k, 60, true)
		c.EndCall()
	}))
}
