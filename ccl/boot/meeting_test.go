package boot

import (
	"flag"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// How a large job begins, over virtual time: the relays of its hosts are placed by the servers' own
// code (tree.place), and what they pass on are tables as they are. Simulated are links, and what a
// process takes for a handshake and for a byte.

// meetingHosts is the size of the job that is simulated, with 12 ranks on a host: `make scale` has
// Aurora's 10,080.
var meetingHosts = flag.Int("hosts", 840, "simulate the start of a job on so many hosts")

// pace is what the parts of a start take. Latency and bandwidth are Slingshot's across groups; the
// rest is what one core does.
var pace = struct {
	latency   time.Duration
	handshake time.Duration // of a process, for one connection: six messages, eight HMACs, and keys
	perSecond float64       // bytes that one connection carries: encrypted, by one core
	link      float64       // and all of a host
	frame     time.Duration // for a server to take in one frame
}{3500 * time.Nanosecond, 200 * time.Microsecond, 1e9, 25e9, 2 * time.Microsecond}

// hostNode is a relay of the simulated job.
type hostNode struct {
	tree
	parent   *hostNode
	children []*hostNode
	deep     int
	free     time.Duration // when it has done with the handshakes that have come
	served   int           // handshakes
	at       netip.AddrPort
}

// arrive leads a newcomer from rank 0 to the relay that takes it, and returns when it is there.
func arrive(root *hostNode, byAddr map[netip.AddrPort]*hostNode, rank, size int, at netip.AddrPort) (taken *hostNode, now time.Duration) {
	conn := &came{at: at.Addr().String()}
	server := root
	for {
		now += 3 * 2 * pace.latency                                 // its round trips
		server.free = max(server.free, now) + pace.handshake/prompt // so many are under way at once
		now = server.free + pace.handshake
		server.served++
		to := server.place(conn, join{Protocol: protocol, Rank: rank, Size: size, PID: rank, Host: "h", Door: at.Port()})
		if to == nil {
			r := &hostNode{tree: tree{most: branchesOf(size)}, parent: server, deep: server.deep + 1, at: at}
			server.children = append(server.children, r)
			byAddr[at] = r
			return r, now
		}
		server = byAddr[to.Addr]
	}
}

// down is how long a frame of so many bytes takes to reach all relays below r: each sends it to its
// branches at the same time, as fast as a core and the link of its host allow.
func (r *hostNode) down(bytes int) (last time.Duration) {
	if len(r.children) == 0 {
		return 0
	}
	each := max(float64(bytes)/pace.perSecond, float64(bytes*len(r.children))/pace.link)
	for _, c := range r.children {
		last = max(last, c.down(bytes))
	}
	return last + pace.latency + time.Duration(each*1e9)
}

// up is how long it takes until all that the ranks behind r say has reached r: frames are taken in
// one after the other.
func (r *hostNode) up(perHost, bytes int) (ranks int, last time.Duration) {
	ranks = perHost
	for _, c := range r.children {
		n, at := c.up(perHost, bytes)
		ranks += n
		last = max(last, at+pace.latency+time.Duration(float64(n*bytes)/pace.perSecond*1e9))
	}
	return ranks, last + time.Duration(ranks)*pace.frame
}

// TestMeetingSimulated prints what a start takes and sends. Rank 0 has the branches that it is
// meant to have, the tree is as deep as these allow and no deeper, and rank 0 sends at most 100 MB.
func TestMeetingSimulated(t *testing.T) {
	const perHost = 12
	hosts := *meetingHosts
	n := hosts * perHost
	root := &hostNode{tree: tree{most: branchesOf(n)}}
	byAddr := map[netip.AddrPort]*hostNode{}
	var met time.Duration
	var sum int
	for h := range hosts {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(h >> 16), byte(h >> 8), byte(h)}), uint16(20_000+h%1000))
		r, now := arrive(root, byAddr, max(1, h*perHost), n, at)
		met, sum = max(met, now), sum+r.deep
	}
	deep, busiest := 0, 0
	for _, r := range byAddr {
		deep, busiest = max(deep, r.deep), max(busiest, r.served)
		require.LessOrEqual(t, len(r.children), branches)
	}
	level, most := 0, 0
	for most < hosts {
		level++
		most = most*branches + branches
	}
	require.Equal(t, level, deep)
	require.Len(t, root.children, min(branches, hosts))

	now, all := met, 0
	steps := []string{"verdict on joining", "hellos", "who made memory", "who took it, and addresses", "last verdict"}
	t.Logf("| %d ranks on %d hosts | after | bytes of the frame | rank 0 sends |", n, hosts)
	t.Logf("| relays are connected, %d deep (%.1f on average); rank 0 has %d handshakes, the busiest relay %d | %v | | |",
		deep, float64(sum)/float64(hosts), root.served, busiest, met.Round(time.Millisecond))
	for i, what := range steps {
		frame, up := verdict{Peer: -1, Addr: loopback, Taken: n}.frame(), frameHead+len(selfJoin(n-1, n).encode())
		if i > 0 {
			values := make([][]byte, n)
			for r := range values {
				values[r] = rounds(r, perHost)[i-1]
			}
			frame, up = tableFrame(values), frameHead+valueHead+len(values[n-1])
			got, err := parseTable(frame[frameHead:], n)
			require.NoError(t, err)
			require.Equal(t, values[n/2], got[n/2])
		}
		_, came := root.up(perHost, up)
		now += came + root.down(len(frame))
		all += len(frame) * len(root.children)
		t.Logf("| %s | %v | %d | %.1f MB |", what, now.Round(time.Millisecond), len(frame), float64(len(frame)*len(root.children))/1e6)
	}
	t.Logf("| all | %v | | %.1f MB |", now.Round(time.Millisecond), float64(all)/1e6)
	require.LessOrEqual(t, all, 100_000_000)
	require.Less(t, now, DefaultLimit/10)
}

// TestMeetingWithoutABranch is the simulated tree without the branches of a relay that has gone:
// newcomers are taken by the others.
func TestMeetingWithoutABranch(t *testing.T) {
	root := &hostNode{tree: tree{most: branches}}
	byAddr := map[netip.AddrPort]*hostNode{}
	come := func(h int) *hostNode {
		at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(h >> 8), byte(h)}), 20_000)
		r, _ := arrive(root, byAddr, h+1, 1000, at)
		return r
	}
	for h := range 100 {
		come(h)
	}
	gone := root.taken[3].conn
	root.leave(gone)
	require.False(t, slices.ContainsFunc(root.taken, func(b branch) bool { return b.conn == net.Conn(gone) }))
	require.Same(t, root, come(100).parent, "there is room at rank 0")
	for h := 101; h < 200; h++ {
		require.NotSame(t, root, come(h).parent, fmt.Sprint(h))
	}
}
