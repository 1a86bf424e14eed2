package boot

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"github.com/goccl/goccl/internal/auth"
)

// lateLimit is how long rank 0 stays after a fault among the joining, so that
// ranks on their way hear of it, too, and do not wait for a rank 0 that has left.
const lateLimit = 2 * time.Second

// rootServer is rank 0's side of the bootstrap. It waits for all ranks and sends them one verdict.
// Then it collects their values, round by round, and sends all of them one table. One goroutine
// decides; see loop.
type rootServer struct {
	hostServer
	absent absence
	addr   netip.Addr // the address listened on, if it is one
	give   []byte     // the job's secret, for ranks that came by a socket of this host

	phase    phase
	since    time.Time // when this phase or round began
	deadline term      // the first of all ranks gives up then
	leave    term      // failed: the local rank is told then, at the latest

	ranks roster
	round round
	final []byte // failed: the verdict
}

// roster has the ranks that joined, and those that left.
type roster struct {
	joined  []*join // by rank
	present int
	gone    map[int]fallen // ranks that left after joining
	order   []int          // in which they left
}

// fallen is a rank that left and cut off the ranks behind it, since it was their relay.
type fallen struct {
	rank int
	who  string
}

// note counts a rank as present, so that nobody waits for it.
func (a *roster) note(j join) {
	if j.Rank < len(a.joined) && a.joined[j.Rank] == nil {
		a.joined[j.Rank] = &j
		a.present++
	}
}

// leaves notes that a rank which had joined is gone, and which one is at fault.
func (a *roster) leaves(rank int, at fallen) {
	a.gone[rank] = at
	a.order = append(a.order, rank)
}

// round is one AllGather.
type round struct {
	number  int      // of those that have ended
	values  [][]byte // by rank; nil where not here yet
	arrived int
	watched bool // somebody needs all ranks now, between two rounds
}

// put keeps the value of a rank.
func (r *round) put(rank int, value []byte) {
	r.values[rank] = value
	r.arrived++
}

// bytes is how large the table of all values can be.
func (r *round) bytes() (n int) {
	for _, v := range r.values {
		n += tableEntry + len(v)
	}
	return n
}

// over makes room for the next one.
func (r *round) over() {
	clear(r.values)
	r.arrived, r.watched = 0, false
}

type phase uint8

const (
	joining phase = iota
	open
	failed
)

func newRootServer(self join, job string) *rootServer {
	return &rootServer{
		hostServer: newHostServer(self, job),
		since:      time.Now(),
		ranks:      roster{joined: make([]*join, self.Size), gone: map[int]fallen{}},
		round:      round{values: make([][]byte, self.Size)},
	}
}

// start lets in those that come to l and know the secret, connects this process's rank, and lets
// the root server decide.
func (h *rootServer) start(l net.Listener, secret auth.Secret) *auth.Stream {
	if a := addrOf(l.Addr()); !a.IsUnspecified() {
		h.addr = a
	}
	conn := h.attach()
	h.listen(l, secret)
	h.wg.Go(h.loop)
	return conn
}

func (h *rootServer) loop() {
	defer h.deadline.clear()
	defer h.leave.clear()
	defer h.held.own.clear()
	defer h.held.late.clear()
	for {
		over := h.deadline.over()
		if h.phase == failed {
			if over = nil; h.held.frames != nil {
				over = h.leave.over()
			}
		}
		select {
		case e := <-h.events:
			h.handle(e)
		case <-over:
			h.expire()
		case <-h.held.late.over():
			h.release()
		case <-h.done:
			return
		}
		if h.unacked == 0 && (h.phase != failed || h.ranks.present == h.self.Size) {
			h.release()
		}
	}
}

func (h *rootServer) handle(e event) {
	switch e.kind {
	case eventCame, eventFailed:
		h.came(e.child)
	case eventGone:
		h.hostServer.gone(e.child)
		h.lost(e.child)
	case eventChanged:
		if h.phase != failed {
			h.fail(changed(e.child.who, h.self))
		}
	case eventFrame:
		if !h.take(e.child, e.frame) {
			e.child.conn.Close() // its end follows as an event
		}
	}
}

// take handles one frame; false if it makes no sense here.
func (h *rootServer) take(ch *child, f frame) bool {
	switch f.kind {
	case frameJoin:
		j, err := parseJoin(f.data)
		if err != nil || j.Rank != f.rank {
			return false
		}
		h.join(ch, j)
	case frameValue:
		return h.value(ch, f)
	case frameLeave:
		v, err := parseVerdict(f.data)
		if err != nil {
			return false
		}
		if _, ok := ch.ranks[f.rank]; ok {
			delete(ch.ranks, f.rank)
			h.left(f.rank, v)
		}
	case frameWatch:
		return h.watch(ch, f.rank)
	case frameAck:
		h.acked(ch)
	default:
		return false
	}
	return true
}

// join is the first phase: rank j.Rank says that it is there.
func (h *rootServer) join(ch *child, j join) {
	fits := j.Rank < h.self.Size && j.Size == h.self.Size
	var first *join
	if j.Rank < h.self.Size {
		first = h.ranks.joined[j.Rank]
	}
	switch {
	case h.phase == failed:
		h.ranks.note(j)
		h.answer(ch, h.final)
	case j.Protocol != protocol:
		h.refuse(ch, fault(Version, "rank %d (%v) speaks version %d of the bootstrap, rank 0 (%v) version %d; run one build of the program on all ranks",
			j.Rank, j, j.Protocol, h.self, protocol), j)
	case !fits:
		h.refuse(ch, fault(Mismatch, "rank %d (%v) was started as one of %d ranks, rank 0 (%v) as one of %d",
			j.Rank, j, j.Size, h.self, h.self.Size), j)
	case first != nil:
		h.refuse(ch, fault(Mismatch, "rank %d was started twice: on %v, and on %v",
			j.Rank, *first, j), j)
	default:
		h.ranks.note(j)
		ch.ranks[j.Rank] = struct{}{}
		ch.taken++
		h.hurry(ch, j.Left)
		if h.ranks.present == h.self.Size {
			h.admitAll()
		}
	}
}

// refuse ends the joining for all ranks. Once they have joined, it only turns away a process that came too late.
func (h *rootServer) refuse(ch *child, e *Error, j join) {
	e.Peer = j.Rank
	if h.phase == joining {
		h.ranks.note(j)
		h.fail(e)
		return
	}
	h.answer(ch, verdictOf(e).frame())
}

// answer sends b to a process that came too late, unless it has had a verdict.
func (h *rootServer) answer(ch *child, b []byte) {
	if ch != h.local && !ch.told {
		h.send(ch, b)
	}
}

// admitAll ends the joining with success.
func (h *rootServer) admitAll() {
	h.phase = open
	h.deadline.clear()
	h.held.own.clear()
	h.tree.end()
	v := verdict{Peer: -1, Addr: h.address()}
	h.broadcast(func(ch *child) []byte {
		to := v
		if to.Taken = ch.taken; ch.within {
			to.Secret = h.give
		}
		return to.frame()
	})
}

// address is where this host is reached from others.
func (h *rootServer) address() netip.Addr {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.addr.IsValid() && !h.addr.IsLoopback():
		return h.addr
	case h.seen.IsValid():
		return h.seen
	case h.addr.IsValid():
		return h.addr
	}
	return loopback
}

// value is the second phase: one rank's part of this round.
func (h *rootServer) value(ch *child, f frame) bool {
	if _, ok := ch.ranks[f.rank]; !ok || len(f.data) < valueHead || h.phase == joining {
		return false
	}
	if h.phase == failed {
		return true // the verdict is on its way
	}
	if h.round.values[f.rank] != nil {
		return false
	}
	if h.round.arrived == 0 {
		h.since = time.Now()
	}
	h.hurry(ch, binary.BigEndian.Uint32(f.data))
	h.round.put(f.rank, f.data[valueHead:])
	if h.round.arrived == h.self.Size {
		h.round.number++
		h.broadcastTable()
	} else if len(h.ranks.gone) > 0 {
		h.blame()
	}
	return true
}

// watch notes that a rank needs all others before it comes to the next round.
func (h *rootServer) watch(ch *child, rank int) bool {
	if _, ok := ch.ranks[rank]; !ok || h.phase == joining {
		return false
	}
	if h.phase == open {
		h.round.watched = true
		h.blame()
	}
	return true
}

func (h *rootServer) broadcastTable() {
	if n := h.round.bytes(); n > maxTable(h.self.Size) {
		h.fail(fault(Argument, "AllGather %d: the values of all ranks have %d bytes; at most %d fit", h.round.number, n,
			maxTable(h.self.Size)))
		return
	}
	b := tableFrame(h.round.values)
	h.broadcast(func(*child) []byte { return b })
	h.round.over()
	h.deadline.clear()
	h.held.own.clear()
}

// lost notes that a connection has ended, and with it the ranks behind it. The rank that made the
// connection is at fault; the others may be alive.
func (h *rootServer) lost(ch *child) {
	for _, rank := range ch.behind() {
		h.left(rank, verdict{Code: Lost, Peer: ch.who.Rank})
	}
}

// left notes that a rank is gone, and why. It is nobody's business unless something
// is, or later comes, under way that needs it.
func (h *rootServer) left(rank int, v verdict) {
	if h.phase == failed || h.ranks.joined[rank] == nil {
		return
	}
	who := *h.ranks.joined[rank]
	if v.Code != Lost {
		e := v.error()
		if e == nil {
			return
		}
		e.Peer, e.Text = rank, reason(rank, who, v)
		h.fail(e)
		return
	}
	at := fallen{rank, who.String()}
	if v.Peer >= 0 && v.Peer < h.self.Size && h.ranks.joined[v.Peer] != nil {
		at = fallen{v.Peer, h.ranks.joined[v.Peer].String()}
	}
	if h.phase == joining {
		h.fail(fault(Lost, "rank %d (%s) was lost while ranks were joining", at.rank, at.who).by(at.rank))
		return
	}
	h.ranks.leaves(rank, at)
	if h.round.arrived > 0 || h.round.watched {
		h.blame()
	}
}

// reason says why a rank gave up.
func reason(rank int, who join, v verdict) string {
	switch v.Code {
	case Canceled:
		return fault(v.Code, "rank %d (%v) was canceled", rank, who).Text
	case Timeout:
		return fault(v.Code, "rank %d (%v) ran out of time", rank, who).Text
	}
	return fault(v.Code, "rank %d (%v) gave up: %s", rank, who, v.Text).Text
}

// blame fails a round that needs a rank which is gone: the first of them to go, and names the one
// whose end took it along.
func (h *rootServer) blame() {
	for _, rank := range h.ranks.order {
		if h.round.values[rank] == nil {
			at := h.ranks.gone[rank]
			h.fail(fault(Lost, "AllGather %d: rank %d (%s) is gone", h.round.number+1, at.rank, at.who).by(at.rank))
			return
		}
	}
}

// hurry notes that a rank which came by ch gives up after so many milliseconds.
func (h *rootServer) hurry(ch *child, left uint32) {
	if ch == h.local {
		h.held.own.after(left)
	}
	if left == 0 {
		return
	}
	d := time.Duration(left) * time.Millisecond
	if before, ok := h.deadline.left(); !ok || d < before {
		h.deadline.set(d)
	}
}

// expire is called when a time has come.
func (h *rootServer) expire() {
	switch h.phase {
	case failed:
		h.release()
	case joining:
		h.deadline.clear()
		h.failMissing("joined", func(r int) bool { return h.ranks.joined[r] == nil })
	case open:
		h.deadline.clear()
		if h.round.arrived > 0 {
			h.failMissing("reached AllGather "+strconv.Itoa(h.round.number+1),
				func(r int) bool { return h.round.values[r] == nil })
		}
	}
}

func (h *rootServer) failMissing(what string, isMissing func(int) bool) {
	var missing []int
	for r := range h.self.Size {
		if isMissing(r) {
			missing = append(missing, r)
		}
	}
	via, common := through(h.children, missing), ""
	if via != nil {
		common = fmt.Sprintf(" All of them reach rank 0 through rank %d (%v).", via.Rank, via)
	}
	why := ""
	if h.phase == joining {
		why = h.absent.why(missing) + h.turnedAway()
	}
	e := fault(Timeout, "%s after %v: %s.%s%s", absent(missing, what), time.Since(h.since).Round(time.Millisecond),
		listRanks(missing), common, why)
	e.Missing = missing
	switch {
	case via != nil:
		e.Peer = via.Rank
	case len(missing) > 0:
		e.Peer = missing[0]
	}
	h.fail(e)
}

// turnedAway says whether somebody knocked in vain: the missing ranks, perhaps.
func (h *rootServer) turnedAway() string {
	n := h.doors.refused()
	if n == 0 {
		return ""
	}
	return " Connections turned away because they did not know the job's secret: " + strconv.Itoa(n) +
		"; give all ranks the same GOCCL_SECRET or GOCCL_SECRET_FILE."
}

// fail gives all ranks the verdict e, and keeps it for those still to come.
func (h *rootServer) fail(e *Error) {
	leave := confirmLimit
	if h.phase == joining && e.Code != Timeout && e.Code != Canceled {
		leave = lateLimit
		if before, ok := h.deadline.left(); ok {
			leave = min(leave, before)
		}
	}
	h.leave.set(h.held.own.until(leave))
	if h.phase == open || e.Code == Timeout || e.Code == Canceled {
		h.ranks.present = h.self.Size // nobody more is waited for
	}
	h.phase = failed
	h.tree.end()
	h.final = verdictOf(e).frame()
	broadcastFailure(&h.hostServer, h.final)
}
