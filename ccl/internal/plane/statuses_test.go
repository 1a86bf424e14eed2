package plane

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
)

// A status that comes for the first time is kept, and sent on over the tree, or, once a lead has gone, to all neighbors.
func TestReceiveStatus(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	j.World.Topo = algo.Blocks(5, 1)
	s := j.Site(0)
	s.Here.Host, s.Here.Mine, s.Here.Procs = PrivateHost(), 0, []int{0}
	received := make(chan string, 100)
	for _, h := range []int{1, 2, 3} { // 1 and 2 are below host 0 in the tree; 3 is beside it on the ring
		a, b := auth.Pipe()
		defer a.Close()
		defer b.Close()
		s.Near.Conns = append(s.Near.Conns, &control.Conn{Stream: a, Host: h, First: h})
		go eachFrame(b, func(kind byte, body []byte) {
			if st := (status.Status{}); kind == control.FrameStatus && st.Decode(body) == nil {
				received <- fmt.Sprintf("host %d: rank %d number %d", h, st.Rank, st.Number)
			}
		})
	}
	defer func() { s.Near.Conns = nil }()
	st := status.Status{Comm: group.WorldID, Rank: 4, Size: 5, World: 4, Peer: -1, For: -1, Number: 1, Doing: status.Waits}
	var markers control.Flood
	sent := func(from *control.Conn) (hosts []string) {
		t.Helper()
		s.receiveStatus(&st, from, true)
		s.Near.Flush()
		marker := st
		marker.Rank = 0
		markers.NumberStatus(&marker)
		on, _ := markers.Status(&marker, nil)
		on.To(s.Near.Conns)
		s.Near.Flush()
		for range len(s.Near.Conns) { // each neighbor has received all that was sent before
			for {
				select {
				case got := <-received:
					var host, rank, number int
					_, err := fmt.Sscanf(got, "host %d: rank %d number %d", &host, &rank, &number)
					require.NoError(t, err)
					if rank == 4 {
						hosts = append(hosts, fmt.Sprint(host))
						continue
					}
				case <-time.After(10 * time.Second):
					require.Fail(t, "a neighbor receives nothing")
				}
				break
			}
		}
		return hosts
	}
	require.ElementsMatch(t, []string{"1", "2"}, sent(nil))
	require.Empty(t, sent(nil), "it is not new")
	st.Number = 2
	require.Equal(t, []string{"1"}, sent(s.Near.Conns[1]), "not where it came from")
	j.World.SetLead(4, 1, gone.Lost)
	st.Number = 3
	require.ElementsMatch(t, []string{"1", "2", "3"}, sent(nil), "the tree does not reach all")
	all := s.Job.Statuses.Of(group.WorldID)
	require.Len(t, all, 1)
	require.EqualValues(t, 3, all[0].Number)

	st.Report = true
	topo := algo.Placed([]int{0, 1, 2, 3, 4, 1}) // rank 5 leads host 1 without rank 1
	s.Near.Conns[0].First = 5
	for _, tc := range []struct {
		name   string
		host   int // which gives the report: the ranks before its first are lost
		fallen int // a rank that is said to be lost
		want   []string
	}{
		{"this host gives the report", 0, 9, nil},
		{"one beside it does", 1, 9, []string{"1"}},
		{"its lead is said to be lost: any way may lead there", 1, 5, []string{"1", "2", "3"}},
		{"another beside it does", 3, 9, []string{"3"}},
		{"one below a living host does", 4, 9, []string{"1"}},
		{"one below a host without a lead does", 4, 5, []string{"1", "2", "3"}},
	} {
		j.World = gone.State{Ranks: gone.Ranks{Topo: topo}}
		if j.World.IsRank(tc.fallen) {
			j.World.Report(tc.fallen)
		}
		for w := range tc.host {
			j.World.Lose(w, false)
		}
		st.Number++
		require.ElementsMatch(t, tc.want, sent(nil), tc.name)
		st.Number++
		require.NotContains(t, sent(s.Near.Conns[0]), "1", "not where it came from")
	}
}

// What a host's first process has put on the board of the host, for the others there, is nothing new when it reads that itself, however
// much has come since.
func TestBoardIsNoCircle(t *testing.T) {
	const calls = 100 // more than the board holds, and than any memory of the last ones
	s := besideAnother(t)
	s.Job.World.Topo = algo.Placed([]int{0, 0, 1, 2})
	var conns []*control.Conn
	told := make(chan uint64, 10*calls)
	for h := 1; h <= 2; h++ {
		a, b := auth.Pipe()
		defer a.Close()
		defer b.Close()
		conns = append(conns, &control.Conn{Stream: a, Host: h, First: 1 + h})
		go eachFrame(b, func(kind byte, body []byte) {
			if st := (status.Status{}); kind == control.FrameStatus && st.Decode(body) == nil {
				told <- st.Calls
			}
		})
	}
	s.Near.Conns = conns
	defer func() { s.Near.Conns = nil }()
	tells := func(k uint64) {
		s.receiveStatus(&status.Status{Comm: group.WorldID, Rank: 3, Size: 4, World: 3, Peer: -1, For: -1, Calls: k, Number: k, Brief: true}, conns[1], true)
	}
	for k := range uint64(calls) {
		tells(k + 1)
		if k%10 == 9 {
			readBoard(s)
		}
	}
	tells(calls + 1)
	for s.Near.Flush() { // a neighbor that takes them late gets some of them later
		time.Sleep(time.Millisecond)
	}
	times := map[uint64]int{}
	for range calls + 1 {
		select {
		case k := <-told:
			times[k]++
		case <-time.After(10 * time.Second):
			require.Fail(t, "one is not told")
		}
	}
	require.Len(t, times, calls+1, "each is told once")
	require.Empty(t, told, "none to where it came from")
}

// What other hosts tell for the report alone stands on the board of this host only if another of its processes gives the report.
func TestReceiveReport(t *testing.T) {
	s := besideAnother(t)
	board := &watch.BoardOf(s.Here.Host).Status
	number := uint64(0)
	stands := func(from *control.Conn) bool {
		number++
		before := board.Claimed()
		s.receiveStatus(&status.Status{Comm: 9, Rank: 7, Size: 8, Peer: -1, For: -1, Number: number, Failed: true, Report: true}, from, true)
		return board.Claimed() > before
	}
	require.True(t, stands(nil), "it is of this host")
	require.True(t, stands(&control.Conn{}), "rank 0 is of another process of this host")
	c := memberOf(t, s, 2, 0, Options{})
	require.False(t, stands(&control.Conn{}), "rank 0 is of this process")
	require.True(t, stands(nil), "it is of this host, whose ranks go by it")
	s.Job.Remove(c)
	s.Job.World.Topo = algo.Blocks(2, 2)
	s.Job.World.Lose(0, false)
	s.Job.World.Lose(1, false)
	require.False(t, stands(&control.Conn{}), "the lowest rank that is left is of another host")
}

// The ranks of this process are told that another one waits, and compare their calls with its.
func TestReceiveStatusOfAMember(t *testing.T) {
	all := ranks(t, 3, Options{})
	s := all[0].Site
	tells := func(rank int32, number uint64, doing status.Doing, brief bool) {
		s.receiveStatus(&status.Status{Comm: group.WorldID, Rank: rank, Size: 3, World: rank, Number: number, Doing: doing, Brief: brief}, nil, true)
	}
	asked := func() (list []bool) {
		for _, c := range all {
			list = append(list, c.Standing.asked.Swap(false))
		}
		return list
	}
	tells(1, 1, status.AtWork, false)
	require.Equal(t, []bool{false, false, false}, asked())
	tells(1, 2, status.Waits, false)
	require.Equal(t, []bool{true, false, true}, asked())
	tells(1, 2, status.Waits, false)
	require.Equal(t, []bool{false, false, false}, asked(), "it is not new")
	tells(1, 3, status.Waits, true)
	require.Equal(t, []bool{false, false, false}, asked(), "it says no more than its order of calls")
}

// What another process of the host writes to the board is read once.
func TestReadBoard(t *testing.T) {
	s := besideAnother(t)
	st := status.Status{Comm: group.WorldID, Rank: 1, Size: 2, World: 1, Number: 1, Doing: status.Waits}
	require.True(t, watch.BoardOf(s.Here.Host).Status.Append(&st, 1, nil))
	require.Empty(t, s.Job.Statuses.Of(group.WorldID))
	readBoard(s)
	require.Len(t, s.Job.Statuses.Of(group.WorldID), 1)
	s.Job.Statuses.Forget(group.WorldID)
	readBoard(s)
	require.Empty(t, s.Job.Statuses.Of(group.WorldID))
	require.Zero(t, testing.AllocsPerRun(10, func() {
		st.Number++
		watch.BoardOf(s.Here.Host).Status.Append(&st, 1, nil)
		readBoard(s)
	}), "reading allocates")
	require.Equal(t, uint64(12), s.Job.Statuses.Of(group.WorldID)[0].Number)
}

// The process of the lowest rank that has not gone speaks for the job, and reports where all stood, once, a moment after
// the first failure.
func TestReportSnapshot(t *testing.T) {
	const at = int64(time.Second)
	for _, tc := range []struct {
		name   string
		before func(j *Job)
		told   int
	}{
		{"rank 0 is here", func(*Job) {}, 1},
		{"rank 0 is elsewhere", func(j *Job) { j.comms.remove(j.comms[group.WorldID][0]) }, 0},
		{"rank 0 is elsewhere, and lost", func(j *Job) { j.comms.remove(j.comms[group.WorldID][0]); j.World.Lose(0, false) }, 1},
		{"rank 0 is elsewhere, and has left", func(j *Job) { j.comms.remove(j.comms[group.WorldID][0]); j.World.Leave(0, []int{0}) }, 1},
		{"nothing has failed", func(j *Job) { j.broken.at = 0 }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			told := make(chan []status.Status, 10)
			all := ranks(t, 2, Options{Hooks: Hooks{OnPicture: func(_ call.Code, s []status.Status) { told <- s }}})
			j := all[0].Site.Job
			j.Statuses.Keep(&status.Status{Comm: group.WorldID, Rank: 1, Calls: 5}, 0)
			j.broken.at = at
			tc.before(j)
			j.reportSnapshot(at + int64(snapshotAfter) - 1)
			j.Life.Wg.Wait()
			require.Empty(t, told)
			for range 3 {
				j.reportSnapshot(at + int64(snapshotAfter))
			}
			j.Life.Wg.Wait()
			require.Len(t, told, tc.told)
			if tc.told > 0 {
				s := <-told
				require.EqualValues(t, 5, s[0].Calls)
			}
		})
	}
}

// Of several Comms of this process the one of the lowest rank of the world speaks, and of several of that the first.
func TestComms(t *testing.T) {
	table := comms{}
	m, _ := table.lowest()
	require.Nil(t, m)
	of := func(id uint64, world int) *Member {
		c := &Member{}
		c.Group = group.New(id, group.MembersOf([]int{world}), algo.Flat(1), 0, group.Agreed{})
		table.add(c)
		return c
	}
	a, b, c := of(9, 3), of(4, 3), of(2, 5)
	m, rank := table.lowest()
	require.Same(t, b, m)
	require.Equal(t, 3, rank)
	require.ElementsMatch(t, []*Member{a, b, c}, table.members(nil))
	d := of(4, 1)
	m, _ = table.lowest()
	require.Same(t, d, m)
	require.False(t, table.remove(d))
	require.True(t, table.remove(b))
	require.ElementsMatch(t, []*Member{a, c}, table.members(nil))
}
