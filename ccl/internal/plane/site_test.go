package plane

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/internal/algo"
)

// A process has one Site for each host, which all its ranks share.
func TestSites(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	require.Empty(t, j.Sites())
	a, b := j.Site(3), j.Site(1)
	require.Same(t, a, j.Site(3))
	require.NotSame(t, a, b)
	require.Equal(t, []*Site{a, b}, j.Sites())
	require.Equal(t, []int{3, 1}, []int{a.Here.Node, b.Here.Node})
}

// A rank that could not share the memory of what seemed to be its host is on another one in the next try. Its process has no Site of
// the first any more: no walk comes by it, and messages to that host's ranks go over TCP.
func TestDropSites(t *testing.T) {
	s := besideAnother(t)
	j := s.Job
	shared := func() (all []*Site) {
		j.mu.Lock()
		defer j.mu.Unlock()
		for s, h := range j.sites.sharing() {
			require.Same(t, s.Here.Host, h)
			all = append(all, s)
		}
		return all
	}
	require.Equal(t, []*Site{s}, shared())
	DropSites(j)
	require.Nil(t, s.Here.Host)
	require.Empty(t, j.Sites())
	require.Empty(t, shared())

	j.World.Topo = algo.Blocks(2, 1) // rank 0, which was beside this process's rank, is on a host of its own
	own := j.Site(1)
	own.Here.Mine, own.Here.Procs = 1, []int{1}
	require.NoError(t, own.Here.MakeHost(false, nil))
	require.NotSame(t, s, j.Site(1))
	require.Equal(t, []*Site{own}, j.Sites())
	require.Empty(t, shared())
	_, err := j.Net.Post.Open()
	require.NoError(t, err)
	p := j.Net.Post
	require.Empty(t, p.doors, "no other process is on this host")
	require.Equal(t, []bool{false, true}, []bool{p.Here(0), p.Here(1)})
	require.Equal(t, []bool{false, true}, []bool{p.Reads(0), p.Reads(1)})
}

// While a process joins, it has no memory of its host yet, and nothing that looks at all Sites expects one.
func TestSiteWithoutMemory(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	j.World.Topo, s.Here.Procs = algo.Flat(2), []int{0, 1}
	require.True(t, j.rest(1000, watch.Idles))
	s.receiveStatus(&status.Status{Rank: 1, Size: 2, World: 1, Number: 1}, nil, true)
	readBoard(s)
	e := event.New(0, call.RankLost, 1, -1, 0, nil)
	e.Stage = event.Proposed
	s.publish(e)
	require.True(t, j.IsLost(1), "it is decided")
	require.Equal(t, tick, j.quickTick())
	require.True(t, s.Here.Log.AppendKept())
	_, err := j.Net.Post.Open()
	require.NoError(t, err)
}

// Ranks that outnumber the processors, those of the host or those of Go, look only a few times before they give way.
func TestSpins(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	s.Here.Host = PrivateHost()
	cores := s.Here.Host.Processors()
	s.Job.World.Topo = group.Topology(make([]int, cores), 1)
	assert.Equal(t, spinsAlone, spinsOf(&s.Here, 1))
	s.Job.World.Topo = group.Topology(make([]int, cores+1), 1)
	assert.Equal(t, SpinsCrowded, spinsOf(&s.Here, 1), "ranks of the host")
	s.Job.World.Topo = group.Topology(make([]int, 1), 1)
	assert.Equal(t, SpinsCrowded, spinsOf(&s.Here, runtime.GOMAXPROCS(0)+1), "ranks of this process")
}

// All ranks take what the first has found, whatever they find themselves. Two ranks need not agree.
func TestAgreeOnCrowding(t *testing.T) {
	for _, tc := range []struct {
		n, spins int
		want     bool
	}{{3, SpinsCrowded, true}, {3, spinsAlone, false}, {104, SpinsCrowded, true}, {2, SpinsCrowded, false}} {
		all := ranks(t, tc.n, Options{})
		all[0].Share.Local.Crowding().Store(0)
		for i, c := range all {
			own := *c.Share.Local // of the same memory
			c.Share.Local, c.Share.Spins = &own, spinsAlone+SpinsCrowded-tc.spins
			if i == 1 {
				c.Share.Spins = tc.spins
			}
			c.Share.Local.Crowded = false
		}
		all[1].Share.agreeOnCrowding()
		for _, c := range all {
			c.Share.agreeOnCrowding()
			assert.Equal(t, tc.want, c.Share.Local.Crowded, "%+v", tc)
		}
		assert.Equal(t, tc.n == 2, all[0].Share.Local.Crowding().Load() == 0, "%+v", tc)
	}
}
