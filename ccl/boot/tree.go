package boot

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// Relays form a tree: rank 0 serves some of them, and sends those that come later on to these,
// which do the same. A table so leaves each process as often as it has branches, whatever the size
// of the job.
//
//	newcomer  handshake with rank 0, whose reply leads to a relay; handshake with that; and so on
//	taken     it is a branch, and tells at which port it takes others itself
//
// Each connection has the handshake of the job's secret, and the way to go comes authenticated with
// its reply. A newcomer that does not reach where it was sent asks rank 0 again, which then takes
// it.
const (
	// branches is how many relays a server takes in a large job.
	branches = 16
	// flat is the size of jobs in which rank 0 takes all relays, so that none needs a second
	// handshake.
	flat = 64
	// prompt is how many connections of a large job rank 0 has in the handshake, unless they are
	// slow: see auth.Strangers.
	prompt = 32
	// maxHops bounds how often a newcomer is sent on.
	maxHops = 16
)

// branchesOf is how many relays each server takes in a job of so many ranks; 0: all that come. It
// is a variable for tests.
var branchesOf = func(size int) int {
	if size <= flat {
		return 0
	}
	return branches
}

// way leads to a relay.
type way struct {
	Rank int            `json:"rank"`
	PID  int            `json:"pid"`
	Host string         `json:"host"`
	Addr netip.AddrPort `json:"addr"`
}

func (w way) String() string { return fmt.Sprintf("host %s, pid %d", w.Host, w.PID) }

// leadsFrom reports whether what reached this process from that address can go this way: within one
// host, or between hosts in one family of addresses.
func (w way) leadsFrom(a netip.Addr) bool {
	to := w.Addr.Addr()
	return w.Addr.Port() != 0 && to.IsValid() && a.IsValid() && !to.IsLinkLocalUnicast() &&
		to.IsLoopback() == a.IsLoopback() && to.Is4() == a.Is4()
}

// leadsTo reports whether who is itself the relay at the end of the way: a newcomer that has lost
// the connection by which it was taken, and asks again before that is known.
func (w way) leadsTo(who join) bool {
	return w.Rank == who.Rank && w.PID == who.PID && w.Host == who.Host
}

// branch is a relay that was taken.
type branch struct {
	conn net.Conn
	way  way
}

// tree is what a server knows of the relays that it took.
type tree struct {
	most int // relays to be taken; 0: all

	mu    sync.Mutex
	over  bool
	taken []branch
	next  int
}

// place takes the relay who, which came by conn, or returns the way to a relay that takes it. Relays of
// another version, and relays that come when the joining is over, are taken, to be told so.
func (t *tree) place(conn net.Conn, who join) *way {
	from := addrOf(conn.RemoteAddr())
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.most > 0 && !t.over && len(t.taken) >= t.most && who.Protocol == protocol && !who.Astray {
		for range t.taken {
			t.next = (t.next + 1) % len(t.taken)
			if w := t.taken[t.next].way; w.leadsFrom(from) && !w.leadsTo(who) {
				return &w
			}
		}
	}
	t.taken = append(t.taken, branch{conn,
		way{Rank: who.Rank, PID: who.PID, Host: who.Host, Addr: netip.AddrPortFrom(from, who.Door)}})
	return nil
}

// leave forgets the relay that came by conn.
func (t *tree) leave(conn net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken = slices.DeleteFunc(t.taken, func(b branch) bool { return b.conn == conn })
}

// end says that the joining is over: who comes from now on is told here how it ended.
func (t *tree) end() {
	t.mu.Lock()
	t.over = true
	t.mu.Unlock()
}

// through is the relay among the missing ranks that connects all of them, if several ranks are missing. A relay
// that is stopped, or out of reach, keeps back all ranks behind it.
func through(children map[*child]struct{}, missing []int) *join {
	for ch := range children {
		if len(missing) > 1 && slices.Contains(missing, ch.who.Rank) &&
			!slices.ContainsFunc(missing, func(r int) bool { _, is := ch.ranks[r]; return !is }) {
			return &ch.who
		}
	}
	return nil
}

// detour is the error of a newcomer that does not reach the relay to which it was sent. An answer of
// that relay is no verdict of rank 0, so the cause is not unwrapped.
type detour struct {
	to  way
	err error
}

func (d *detour) Error() string {
	return fmt.Sprintf("rank %d (%v) at %v, to which rank 0 sent this rank: %v", d.to.Rank, d.to, d.to.Addr, d.err)
}

// errSelf is what a relay says to itself, where it was sent to its own door.
var errSelf = errors.New("a relay cannot reach rank 0 through itself")

var errHops = errors.New("it was sent on too often")
