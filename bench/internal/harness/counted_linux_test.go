package harness

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// traffic is what the TCP connections of this process have sent and received, in bytes, as the kernel has counted.
func traffic() (sent, received int64) {
	fds, _ := os.ReadDir("/proc/self/fd")
	for _, e := range fds {
		fd, _ := strconv.Atoi(e.Name())
		if info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			sent, received = sent+int64(info.Bytes_sent), received+int64(info.Bytes_received)
		}
	}
	return sent, received
}

// Busbw is what the busiest link carries: bytes that the kernel counts on the connections of each rank, over the time.
// Each rank is a process and a host of its own. The algorithms are those that send no byte more than any must. What
// counts is what a rank sends; of broadcast and gather what it receives.
func TestBusBandwidthByCountedBytes(t *testing.T) {
	t.Setenv("GOCCL_ALGO", "allreduce=ring,allgather=ring,reducescatter=ring,broadcast=tree,reduce=tree,gather=direct,scatter=direct")
	file := filepath.Join(t.TempDir(), "matrix")
	require.NoError(t, os.WriteFile(file, []byte("1 2 3\n4 0 6\n7 1 0\n"), 0o666)) // the same in all processes
	for _, tc := range []struct {
		ranks int
		ops   []string
		args  []string
	}{
		{2, coll.Names(), nil},
		{3, coll.Names(), nil},
		{3, []string{"broadcast", "reduce", "gather", "scatter"}, []string{"-r", "2"}},
		{3, []string{"alltoallv"}, []string{"-op", "alltoallv", "-matrix", file}},
		{4, []string{"alltoallv"}, []string{"-op", "alltoallv", "-matrix", "spread:0.9"}},
		{4, []string{"allreduce", "alltoall", "alltoallv", "gather"}, []string{"-split", "mod:2"}},
		{5, []string{"allreduce", "allgather", "alltoallv", "broadcast", "gather"}, []string{"-split", "mod:2"}},
	} {
		ccltest.Run(t, tc.ranks, func(t testing.TB, c *ccl.Comm) {
			o := options(t, append([]string{"-b", "4M", "-e", "4M", "-n", "2", "-c", "0"}, tc.args...)...)
			s := &session{ctx: t.Context(), o: &o, world: c, lanes: []lane{{"cpu", c}}}
			require.NoError(t, s.divide(s.ctx))
			require.NoError(t, s.meet(s.ctx))
			require.NoError(t, s.prepare())
			for _, op := range tc.ops {
				if op != "barrier" { // it has no bytes
					countedBytes(t, s, op)
				}
			}
			require.NoError(t, s.end()) // leave the groups: a process that ends in one is lost
		}, ccltest.Processes(tc.ranks), ccltest.Hosts(tc.ranks))
		if testing.Short() {
			return
		}
	}
}

func countedBytes(t testing.TB, s *session, op string) {
	c, root := coll.Named[float32](op), -1
	if c.Rooted {
		root = s.o.Root % s.groups.shown()
	}
	e := extentOf(s, c, s.o.Max)
	rows, err := line(s, c, ccl.Sum, root, e)
	require.NoError(t, err)

	const calls = 4
	test := newTest(s, s.ctx, s.lanes[0], c, ccl.Sum, root, e.count, e.room, false)
	together := func() {
		here := []int64{0}
		require.NoError(t, ccl.AllReduce(s.ctx, s.world, here, here, ccl.Sum))
	}
	together()
	sent, received := traffic()
	together()
	for range calls {
		require.NoError(t, test.call(test.nextBuffers()))
	}
	together()
	sentNow, receivedNow := traffic()
	all := make([]int64, 2*s.world.Size())
	require.NoError(t, ccl.AllGather(s.ctx, s.world, all, []int64{sentNow - sent, receivedNow - received}))
	most := 0.0
	for rank := range s.world.Size() {
		if s.groups.together(rank) {
			n := all[2*rank]
			if op == "broadcast" || op == "gather" {
				n = all[2*rank+1]
			}
			most = max(most, float64(n)/calls)
		}
	}
	if s.world.Rank() > 0 {
		return
	}
	half := rows[0].OutOfPlace
	require.NotNil(t, half.BusBW, op)
	// Beside the data there are headers and what the control plane says, which is more the longer the calls take: 15 KB of a call
	// on a busy machine.
	require.InEpsilon(t, most, *half.BusBW*half.Time*1e3, 0.02, "%s %v: %.0f bytes of a call of %d, all ranks: %v", op, s.o.Split, most, rows[0].Size, all)
}
