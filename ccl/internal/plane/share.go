package plane

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// The processes of a host share one memory, which the process of the host's lowest rank makes. Which processes are on one
// host is what they say of themselves, until they have tried: machines that were cloned while they ran say the same, and
// so do network namespaces with one GOCCL_HOSTID. A try waits for nobody outside the bootstrap's exchanges:
//
//	offer   the maker makes the memory, and opens the door at which it hands it out
//	        all hear whether it could
//	take    the others take it from there: nobody at the door means that it is on another host
//	        all hear who could, and where all ranks are reached
//
// Processes that could not take it try among themselves next, and then are hosts of their own.

// shareTries is how many tries that takes at most: the last shares nothing that has not been shared before.
const shareTries = 4

// errCannotShare says that this process cannot share memory with the others of what
// seemed to be its host: it counts as being on another one then.
var errCannotShare = errors.New("no shared memory with the other ranks of this host")

// leastSilence is the shortest silence that makes a process or a host lost, whatever Options.PeerTimeout: four beats, since
// one may be late on a busy machine.
const leastSilence = 4 * BeatEvery

// alone is what apart says of a rank whose process tries no more.
const alone = 2

// share finds out which ranks share memory, makes that, and makes this rank's Comm in it, which begins with the last
// verdict. It also returns what all ranks have said in the verdict on it: where they are reached.
func (j *job) share(ctx context.Context, r *rounds, end maker) (*Member, [][]byte, *call.Fault) {
	apart := make([]uint8, len(r.all)) // how often a rank's process could not share
	why := ""
	for try := range shareTries {
		nodeOf := hostsOf(r.all, apart)
		var at *Site
		err := j.tries[try].do(func() error { return j.begin(r.boot, nodeOf) })
		if err == nil {
			at = j.Site(j.Topo.Node(r.rank))
			err = at.offers[try].do(func() error { return at.offerHost(r, try) })
		}
		if anyShared(r.all, nodeOf) {
			said, f := r.verdict(ctx, err, nil)
			if f != nil {
				return nil, nil, f
			}
			if markApart(apart, nodeOf, said, true) {
				why = r.whyApart(said, why)
				continue
			}
		}
		var c *Member
		if err == nil {
			err = at.takes[try].do(func() error { return at.takeHost(ctx, r, try) })
		}
		if err == nil {
			c, err = end(at, j.Topo, r.rank, boardOf(at.Host).world.Load())
		}
		var addr []byte
		if err == nil && j.TCP != nil {
			addr, _ = j.TCP.Addr().MarshalBinary()
		}
		said, f := r.verdict(ctx, err, addr)
		again := f == nil && markApart(apart, nodeOf, said, false)
		if c != nil && (f != nil || again) {
			c.Abandon()
		}
		if f != nil {
			return nil, nil, f
		}
		if !again {
			c.apart = why
			return c, said, nil
		}
		why = r.whyApart(said, why)
	}
	return nil, nil, call.NewFault(call.Backend, -1, "the ranks of a host could not agree on shared memory: %s", why)
}

// hostsOf numbers the hosts, in the order of their lowest ranks, and says which each
// rank is on.
func hostsOf(all [][]byte, apart []uint8) []int {
	number := make(map[[16]byte]int)
	nodeOf := make([]int, len(all))
	for r := range all {
		key := hello(all[r]).host()
		if apart != nil && apart[r] > 0 {
			of := append(key[:], apart[r])
			if apart[r] >= alone {
				of = append(of, hello(all[r]).process()...)
			}
			sum := sha256.Sum256(of)
			key = [16]byte(sum[:])
		}
		h, ok := number[key]
		if !ok {
			h = len(number)
			number[key] = h
		}
		nodeOf[r] = h
	}
	return nodeOf
}

// anyShared reports whether some host has more than one process.
func anyShared(all [][]byte, nodeOf []int) bool {
	first := map[int]string{}
	for r, h := range nodeOf {
		p := string(hello(all[r]).process())
		if q, ok := first[h]; ok && q != p {
			return true
		}
		first[h] = p
	}
	return false
}

// markApart notes in apart who could not share memory, and reports whether anybody could not. A maker that could not make it
// is alone; the others of its host try again without it.
func markApart(apart []uint8, nodeOf []int, said [][]byte, offered bool) bool {
	var makerless []int
	again := false
	for r, m := range said {
		if m[0] != unshared {
			continue
		}
		again = true
		apart[r]++
		if offered {
			apart[r] = alone
			makerless = append(makerless, nodeOf[r])
		}
	}
	for r, h := range nodeOf {
		if said[r][0] != unshared && slices.Contains(makerless, h) {
			apart[r]++
		}
	}
	return again
}

// whyApart is why ranks that seemed to be on this rank's host do not share its memory, on the lowest of them, which is to
// tell; it is before where it had a reason before.
func (r *rounds) whyApart(said [][]byte, before string) string {
	mine := hello(r.all[r.rank]).host()
	if before != "" || slices.IndexFunc(r.all, func(h []byte) bool { return hello(h).host() == mine }) != r.rank {
		return before
	}
	for o, m := range said {
		if m[0] == unshared && hello(r.all[o]).host() == mine {
			return fmt.Sprintf("rank %d: %s", o, m[1:])
		}
	}
	return ""
}

// begin sets up what the ranks of this process share, once per try: all of them must know the hosts before any goes on.
func (j *job) begin(b Bootstrap, nodeOf []int) error {
	nodes := 0
	for _, h := range nodeOf {
		nodes = max(nodes, h+1)
	}
	j.Topo = Topology(nodeOf, nodes)
	for _, s := range j.siteList() { // from an earlier try
		s.giveUp()
	}
	if nodes > 1 && j.TCP == nil {
		return j.openTCP(b)
	}
	return nil
}

// start lets the monitor begin, once all have their memory.
func (j *job) start() {
	for _, s := range j.siteList() {
		if s.door != nil {
			s.door.shut()
		}
		s.startSilence()
	}
	j.Wg.Add(1)
	go j.monitor()
}

// offerHost makes this host's memory, and opens the door for the host's other processes, if this process is to do that.
func (s *Site) offerHost(r *rounds, try int) error {
	inject.At("join.host")
	// The processes of this host, each by its lowest rank.
	first := map[string]int{}
	n := s.Topo.Locals(s.Node)
	procs := make([]int, n)
	for l := range n {
		w := s.Topo.Rank(s.Node, l)
		p := string(hello(r.all[w]).process())
		if _, ok := first[p]; !ok {
			first[p] = w
		}
		procs[l] = first[p]
	}
	s.Procs = procs
	s.Mine = first[string(process[:])]
	s.maker = s.Mine == s.Topo.Rank(s.Node, 0)
	if !s.maker {
		return nil
	}
	h := PrivateHost()
	if len(first) > 1 {
		var err error
		if h, err = sharedHost(); err != nil {
			return err
		}
	}
	off, err := h.Alloc(region.Bytes(n))
	if err != nil {
		h.Close()
		return err
	}
	boardOf(h).world.Store(off)
	s.open(h)
	if len(first) == 1 {
		return nil
	}
	if off, err = h.Alloc(pulseBytes(n)); err != nil {
		return err
	}
	boardOf(h).pulses.Store(off)
	if err := s.showLife(h); err != nil {
		return err
	}
	s.OpenRinger(s.hostKey(r, try))
	d, err := s.openDoor(s.hostKey(r, try))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.door = d
	s.mu.Unlock()
	return nil
}

// takeHost takes this host's memory from its maker, if this process is not that, and makes sure that there is enough.
func (s *Site) takeHost(ctx context.Context, r *rounds, try int) error {
	if !s.maker {
		h, c, err := s.knock(ctx, s.hostKey(r, try))
		if err != nil {
			return err
		}
		s.open(h)
		if err := s.showLife(h); err != nil {
			c.Close()
			return err
		}
		s.OpenRinger(s.hostKey(r, try))
		s.partAtDoor(c)
	}
	return roomForCalls(s.Topo.Locals(s.Node))
}

// hostKey is what only ranks of this job can know of its host's memory in this try: it is made of what all ranks have
// said in the first exchange. It proves who is at the door, and names the door, so that nobody can stand there first.
func (s *Site) hostKey(r *rounds, try int) []byte {
	var secret []byte
	if b, ok := r.boot.(interface{ Secret() []byte }); ok {
		secret = b.Secret()
	}
	k := hmac.New(sha256.New, secret)
	for _, h := range r.all {
		k.Write(hello(h).seed())
	}
	k.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.Node)))
	k.Write([]byte{byte(try)})
	return k.Sum(nil)
}

// open lets the monitor see the host's memory.
func (s *Site) open(h *shm.Host) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Host = h
}

// giveUp drops what an unsuccessful try has left, once nobody uses it.
func (s *Site) giveUp() {
	s.hideLife()
	s.CloseRinger()
	s.mu.Lock()
	d, ends := s.door, s.unix
	s.door, s.unix = nil, nil
	s.mu.Unlock()
	if d != nil {
		d.shut()
		d.drop()
	}
	for _, c := range ends {
		closeInOrder(c)
	}
	s.Attending.Wait()
	s.kept.Lock()
	s.kept.events = nil
	s.kept.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scanned.Store(0)
	if s.Host != nil {
		s.Host.Close()
		s.Host = nil
	}
}
