package boot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/require"
)

// came is a connection that came from that address.
type came struct {
	net.Conn
	at string
}

func (c *came) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(c.at), 9))
}

func TestBranches(t *testing.T) {
	require.Equal(t, 0, branchesOf(flat))
	require.Equal(t, branches, branchesOf(flat+1))
}

// A server with all its branches sends newcomers to these in turn, if they are reached from there
// and have a door, and takes those that it can send nowhere.
func TestPlace(t *testing.T) {
	relay := func(rank int, door uint16) join {
		return join{Protocol: protocol, Rank: rank, Size: 99, PID: rank, Host: fmt.Sprint("h", rank), Door: door}
	}
	type newcomer struct {
		from string
		who  join
		to   int // 0: it is taken
	}
	for _, tc := range []struct {
		name  string
		most  int
		over  bool
		comes []newcomer
	}{
		{"a small job", 0, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", relay(2, 7), 0}, {"10.0.0.3", relay(3, 7), 0}}},
		{"in turns", 2, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", relay(2, 7), 0},
			{"10.0.0.3", relay(3, 7), 2}, {"10.0.0.4", relay(4, 7), 1}, {"10.0.0.5", relay(5, 7), 2}}},
		{"one has no door", 2, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", relay(2, 0), 0},
			{"10.0.0.3", relay(3, 7), 1}, {"10.0.0.4", relay(4, 7), 1}}},
		{"none has", 1, false, []newcomer{{"10.0.0.1", relay(1, 0), 0}, {"10.0.0.3", relay(3, 7), 0}, {"10.0.0.4", relay(4, 7), 3}}},
		{"rank 0's own host", 1, false, []newcomer{{"127.0.0.1", relay(1, 7), 0}, {"10.0.0.2", relay(2, 7), 0},
			{"127.0.0.1", relay(3, 7), 1}, {"10.0.0.4", relay(4, 7), 2}}},
		{"families", 1, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"fd00::2", relay(2, 7), 0}, {"fd00::3", relay(3, 7), 2}, {"10.0.0.4", relay(4, 7), 1}}},
		{"addresses of a link", 1, false, []newcomer{{"fe80::1", relay(1, 7), 0}, {"fe80::2", relay(2, 7), 0}}},
		{"the joining is over", 1, true, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", relay(2, 7), 0}}},
		{"another version", 1, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", join{Protocol: protocol - 1, Rank: 2, Size: 99}, 0}}},
		{"astray", 1, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", join{Protocol: protocol, Rank: 2, Size: 99, Astray: true}, 0}}},
		{"itself, not yet forgotten", 2, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.2", relay(2, 7), 0},
			{"10.0.0.2", relay(2, 7), 1}, {"10.0.0.2", relay(2, 7), 1}}},
		{"itself alone", 1, false, []newcomer{{"10.0.0.1", relay(1, 7), 0}, {"10.0.0.1", relay(1, 7), 0}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tr := tree{most: tc.most, over: tc.over}
			for _, n := range tc.comes {
				to := tr.place(&came{at: n.from}, n.who)
				if n.to == 0 {
					require.Nil(t, to, "rank %d", n.who.Rank)
					continue
				}
				require.NotNil(t, to, "rank %d", n.who.Rank)
				require.Equal(t, way{Rank: n.to, PID: n.to, Host: fmt.Sprint("h", n.to), Addr: to.Addr}, *to)
				require.EqualValues(t, 7, to.Addr.Port())
			}
		})
	}
}

// A relay that is sent to its own door is not taken there, and asks rank 0 again.
func TestOwnDoor(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	c := newHostServer(selfJoin(1, 99), "job")
	defer c.close()
	c.listen(l, secretOf(sesame))
	for rank, want := range []error{nil, errSelf} {
		f := &dialer{job: "job", self: selfJoin(rank, 99)}
		r := f.reach(within(t, long), "tcp", l.Addr().String(), secretOf(sesame))
		if want == nil {
			require.NoError(t, r.err)
			r.conn.Close()
			continue
		}
		require.ErrorContains(t, r.err, want.Error())
	}
}

// A branch that has gone makes room.
func TestBranchLeaves(t *testing.T) {
	tr := tree{most: 1}
	first := &came{at: "10.0.0.1"}
	require.Nil(t, tr.place(first, join{Protocol: protocol, Rank: 1, Size: 9, Door: 7}))
	tr.leave(&came{at: "10.0.0.1"}) // another one
	require.NotNil(t, tr.place(&came{at: "10.0.0.2"}, join{Protocol: protocol, Rank: 2, Size: 9, Door: 7}))
	tr.leave(first)
	require.Nil(t, tr.place(&came{at: "10.0.0.2"}, join{Protocol: protocol, Rank: 2, Size: 9, Door: 7}))
}

// takenBy are the relays that h has taken, which goroutines of its connections change.
func takenBy(h *rootServer) []branch {
	h.tree.mu.Lock()
	defer h.tree.mu.Unlock()
	return slices.Clone(h.tree.taken)
}

// relayAt joins as a relay, rank of size, which tells that it takes others at that port.
func relayAt(t *testing.T, root string, rank, size int, port int) *auth.Stream {
	f := dialerTo(rank, size, "", sesame, root)
	f.door = func(context.Context, net.Addr, auth.Secret) uint16 { return uint16(port) }
	conn, _, err := f.dial(within(t, long))
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	write(t, conn, joinOf(rank, size).encode())
	return conn
}

// A relay to which rank 0 sends others, and which they do not reach, does not keep them from
// joining. Its end is told to all, with its name.
func TestRelayLostWhileJoining(t *testing.T) {
	branching(t, 1)
	noLeaks(t)
	h, root, mine := rootFor(t, 4, "", sesame)
	relay := relayAt(t, root, 1, 4, portOf(t, closedPort(t)))
	joins := make(chan error, 1)
	go func() {
		_, err := TCP(within(t, long), root, 2, 4, &TCPOptions{Secret: []byte(sesame), HostID: "2"})
		joins <- err
	}()
	require.Eventually(t, func() bool { // rank 3 is missing
		return len(takenBy(h)) == 2
	}, long, time.Millisecond)
	relay.Close()
	text := "rank 1 (" + who(1) + ") was lost while ranks were joining"
	e := wantError(t, <-joins, Lost, 2, 1)
	require.Equal(t, text, e.Text)
	require.Equal(t, verdict{Code: Lost, Peer: 1, Text: text}, readVerdict(t, mine))
}

// Ranks that do not reach the relay to which they are sent are taken by rank 0.
func TestAstray(t *testing.T) {
	branching(t, 1)
	noLeaks(t)
	root := freeRoot(t)
	first := make(chan *Boot, 1)
	go func() {
		b, err := TCP(within(t, long), root, 0, 4, &TCPOptions{Secret: []byte(sesame), HostID: "0"})
		if err != nil {
			b = nil
		}
		first <- b
	}()
	relay := relayAt(t, root, 1, 4, portOf(t, closedPort(t)))
	boots, errs := all(2, func(i int) (*Boot, error) {
		return TCP(within(t, long), root, 2+i, 4, &TCPOptions{Secret: []byte(sesame), HostID: fmt.Sprint(2 + i)})
	})
	require.Equal(t, make([]error, 2), errs)
	require.Equal(t, 1, readVerdict(t, relay).Taken)
	write(t, relay, frame{kind: frameAck}.encode())
	b := <-first
	require.NotNil(t, b)
	closeAll(append(boots, b))
}

// The end of the relay through which the others reach rank 0 is told by its name to all, on either
// side of it, whether they wait for an answer or not, and however far they are from it.
func TestRelayLost(t *testing.T) {
	for _, waiting := range []bool{false, true} {
		t.Run(fmt.Sprint("waiting ", waiting), func(t *testing.T) {
			branching(t, 1)
			noLeaks(t)
			root := freeRoot(t)
			const n = 5
			boots := joined(t, n, func(r int) (*Boot, error) {
				return TCP(within(t, long), root, r, n, &TCPOptions{Secret: []byte(sesame), HostID: fmt.Sprint(r)})
			})
			swap(t, boots)
			lost := takenBy(boots[0].server.(*rootServer))[0].way.Rank
			values := make([][]byte, n)
			end := func() { boots[lost].Close() }
			if waiting {
				time.AfterFunc(20*time.Millisecond, end)
			} else {
				end()
			}
			others := append([]*Boot(nil), boots...)
			others[lost] = nil
			_, errs := gather(within(t, long), others, values)
			for r, err := range errs {
				if r != lost {
					e := wantError(t, err, Lost, r, lost)
					require.Contains(t, e.Text, fmt.Sprintf("rank %d (%s)", lost, who(lost)))
				}
			}
		})
	}
}

// astray is how many newcomers a busy machine may keep from the relays to which they are sent.
const astray = 4

// A relay that keeps back all that is behind it, as one that is stopped, is named by rank 0 where
// the time is over.
func TestRelayHoldsUp(t *testing.T) {
	branching(t, 1)
	noLeaks(t)
	root := freeRoot(t)
	const n = 5
	boots := joined(t, n, func(r int) (*Boot, error) {
		return TCP(within(t, long), root, r, n, &TCPOptions{Secret: []byte(sesame), HostID: fmt.Sprint(r)})
	})
	first := takenBy(boots[0].server.(*rootServer))[0].way.Rank
	// Rank 0 has little time, and reads for as long as the verdict takes through all relays.
	write(t, boots[0].conn, frame{kind: frameValue, rank: 0, data: binary.BigEndian.AppendUint32(nil, 100)}.encode())
	e := wantError(t, boots[0].fail(boots[0].heard(<-boots[0].in)), Timeout, 0, first)
	require.Equal(t, []int{1, 2, 3, 4}, e.Missing)
	require.Regexp(t, `^4 ranks have not reached AllGather 1 after [\d.]+m?s: 1-4\. All of them reach rank 0 through rank `+fmt.Sprint(first)+` \(host .*\)\.$`, e.Text)
}

// Ranks of several relays, one rank, and ranks whose relay has come, are kept back by no relay.
func TestThrough(t *testing.T) {
	of := func(rank int, ranks ...int) *child {
		ch := &child{who: join{Rank: rank, Host: "h", PID: 1}, ranks: map[int]struct{}{rank: {}}}
		for _, r := range ranks {
			ch.ranks[r] = struct{}{}
		}
		return ch
	}
	children := map[*child]struct{}{of(1, 2, 3): {}, of(4, 5): {}, of(0): {}}
	for _, tc := range []struct {
		missing []int
		want    int // -1: none
	}{{[]int{1, 2}, 1}, {[]int{4, 5}, 4}, {[]int{1}, -1}, {[]int{2, 3}, -1}, {[]int{1, 4}, -1}, {[]int{7, 8}, -1}, {nil, -1}} {
		got := -1
		if via := through(children, tc.missing); via != nil {
			got = via.Rank
		}
		require.Equal(t, tc.want, got, "%v", tc.missing)
	}
}

// Who waits in vain for the relay to which it was sent names that one.
func TestDetourIsNamed(t *testing.T) {
	to := way{Rank: 7, PID: 70, Host: "x1", Addr: netip.MustParseAddrPort("10.0.0.7:99")}
	last := &detour{to, &net.OpError{Op: "dial", Err: errors.New("connect: no route to host")}}
	ctx := &untilAgain{passed: make(chan struct{})}
	close(ctx.passed)
	e := new(dialer).unreachable(ctx, "h:1", 3*time.Second, last)
	require.Equal(t, Timeout, e.Code)
	require.Equal(t, 7, e.Peer)
	require.Equal(t, "rank 7 (host x1, pid 70), through which this rank is to reach rank 0, was not reached at 10.0.0.7:99 within 3s: connect: no route to host."+
		" Can the hosts of the job connect with each other?", e.Text)
	require.Greater(t, telling(last), telling(auth.ErrUnauthorized))
	require.Zero(t, (&dialer{fixed: true}).verdict(&detour{to, &auth.Refused{Text: "x"}}), "rank 0 has not said that")
}

// Many hosts join through a tree, whose root takes few of them, and all get every value.
func TestDeepTree(t *testing.T) {
	for _, most := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			branching(t, most)
			noLeaks(t)
			root := freeRoot(t)
			const n = 12
			boots := joined(t, n, func(r int) (*Boot, error) {
				return TCP(within(t, long), root, r, n, &TCPOptions{Secret: []byte("a secret of sixteen"), HostID: fmt.Sprint(r)})
			})
			for _, b := range boots {
				require.Equal(t, []byte("a secret of sixteen"), b.Secret())
				require.Equal(t, loopback, b.Addr())
			}
			require.Eventually(t, func() bool {
				now := len(takenBy(boots[0].server.(*rootServer)))
				return now >= most && now <= most+astray
			}, long, time.Millisecond)
			for range 3 {
				swap(t, boots)
			}
		})
	}
}
