package join

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/internal/plain"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// The processes of a host share one memory, which the process of the host's lowest rank makes.
// Which processes are on one host is what they say of themselves, until they have tried: machines
// that were cloned while they ran say the same, and so do network namespaces with one GOCCL_HOSTID.
// A try waits for nobody outside the bootstrap's exchanges:
//
//	offer   the maker makes the memory, and serves it
//	        all hear whether it could
//	take    the others take it from there: where nobody serves it, it is on another host
//	        all hear who could, and where all ranks are reached
//
// Processes that could not take it try among themselves next, and then are hosts of their own.

// shareTries is how many tries that takes at most: the last shares nothing that has not been shared before.
const shareTries = 4

// alone is what apart says of a rank whose process tries no more.
const alone = 2

// share finds out which ranks share memory, makes that, and makes this rank's Comm in it, which begins with the last
// verdict. It also returns what all ranks have said in the verdict on it: where they are reached.
func share(ctx context.Context, j *plane.Job, r *exchanges, end maker) (*plane.Member, [][]byte, *call.Fault) {
	apart := make([]uint8, len(r.all)) // how often a rank's process could not share
	why := ""
	for try := range shareTries {
		nodeOf := hostsOf(r.all, apart)
		var at *plane.Site
		err := j.Once(fmt.Sprint("hosts ", try), func() error { return begin(j, r, nodeOf) })
		if err == nil {
			at = j.Site(j.World.Topo.Node(r.rank))
			err = at.Job.Once(fmt.Sprint("offer ", at.Here.Node, " ", try), func() error { return offerHost(at, r, try) })
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
		var c *plane.Member
		if err == nil {
			err = at.Job.Once(fmt.Sprint("take ", at.Here.Node, " ", try), func() error { return takeHost(ctx, at, r, try) })
		}
		if err == nil {
			c, err = end(at, j.World.Topo, r.rank, at.Here.FirstRegion())
		}
		var addr []byte
		if err == nil && j.Net.TCP != nil {
			addr, _ = tcp.Found(j.Net.TCP.Addr()).MarshalBinary()
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
			c.Share.SetApart(why)
			return c, said, nil
		}
		why = r.whyApart(said, why)
	}
	return nil, nil, call.NewFault(call.Backend, -1, "the ranks of a host could not agree on shared memory: %s", why)
}

// hostsOf numbers the hosts, in the order of their lowest ranks, and says which each
// rank is on.
func hostsOf(all [][]byte, apart []uint8) []int {
	keys := make([][16]byte, len(all))
	for r := range all {
		keys[r] = hello(all[r]).host()
		if apart != nil && apart[r] > 0 {
			of := append(keys[r][:], apart[r])
			if apart[r] >= alone {
				of = append(of, hello(all[r]).process()...)
			}
			sum := sha256.Sum256(of)
			keys[r] = [16]byte(sum[:])
		}
	}
	return group.Dense(keys)
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

// markApart notes in apart which processes could not share memory, and reports whether there are
// any. A maker that could not make it is alone; the others of its host try again without it.
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

// whyApart is why ranks that seemed to be on this rank's host do not share its memory, on the
// lowest of them, which is to tell; it is before where it had a reason before.
func (r *exchanges) whyApart(said [][]byte, before string) string {
	mine := hello(r.all[r.rank]).host()
	if before != "" || slices.IndexFunc(r.all, func(h []byte) bool { return hello(h).host() == mine }) != r.rank {
		return before
	}
	for o, m := range said {
		if m[0] == unshared && hello(r.all[o]).host() == mine {
			return fmt.Sprintf("rank %d: %s", o, plain.Text(string(m[1:])))
		}
	}
	return ""
}

// begin sets up what the ranks of this process share, once per try: all of them must know the hosts before any goes on.
func begin(j *plane.Job, r *exchanges, nodeOf []int) error {
	nodes := 1 + slices.Max(nodeOf)
	j.World.Topo = group.Topology(nodeOf, nodes)
	plane.DropSites(j) // of an earlier try
	if nodes > 1 && j.Net.TCP == nil {
		return openTCP(j, r)
	}
	return nil
}

// offerHost makes this host's memory, and serves it to the host's other processes, if this process is to do that.
func offerHost(s *plane.Site, r *exchanges, try int) error {
	inject.At("join.host")
	// The processes of this host, each by its lowest rank.
	first := map[string]int{}
	procs := make([]int, s.Job.World.Topo.Locals(s.Here.Node))
	for l := range procs {
		w := s.Job.World.Topo.Rank(s.Here.Node, l)
		p := string(hello(r.all[w]).process())
		if _, ok := first[p]; !ok {
			first[p] = w
		}
		procs[l] = first[p]
	}
	self := processOf(s.Job.Net.At)
	s.Here.Procs, s.Here.Mine = procs, first[string(self[:])]
	if !makes(s) {
		return nil
	}
	shared := len(first) > 1
	if err := s.Here.MakeHost(shared, r.from); err != nil || !shared {
		return err
	}
	openRinger(s, hostKey(s, r, try))
	return serveMemory(s, hostKey(s, r, try), r.secret)
}

// makes reports whether this process has the host's lowest rank, and so makes its memory.
func makes(s *plane.Site) bool { return s.Here.Mine == s.Job.World.Topo.Rank(s.Here.Node, 0) }

// openRinger lets other processes of the host wake this one's monitor.
func openRinger(s *plane.Site, key []byte) {
	s.Here.OpenRinger(func(local int) string { return socketName(key, "bell", uint32(local)) })
}

// takeHost takes this host's memory from its maker, if this process is not that, and makes sure that there is enough.
func takeHost(ctx context.Context, s *plane.Site, r *exchanges, try int) error {
	if !makes(s) {
		key := hostKey(s, r, try)
		h, c, err := receiveMemory(ctx, s, key, r.secret, r.from)
		if err != nil {
			return err
		}
		if err := s.Here.TakeHost(h); err != nil {
			c.Close()
			return err
		}
		openRinger(s, key)
		keepOrClose(s, c)
	}
	return roomForCalls(s.Job.World.Topo.Locals(s.Here.Node), watch.LayoutOf(s.Here.Host))
}

// hostKey is what only ranks of this job can know of its host's memory in this try: it is made of what all ranks have
// said in the first exchange. It proves who connects, and names the socket, so that nobody can take the name first.
func hostKey(s *plane.Site, r *exchanges, try int) []byte {
	k := hmac.New(sha256.New, r.secret.Bytes())
	k.Write(hello(r.all[0]).seed())
	for _, h := range r.all {
		k.Write(hello(h).process())
	}
	k.Write(binary.LittleEndian.AppendUint64(nil, uint64(s.Here.Node)))
	k.Write([]byte{byte(try)})
	return k.Sum(nil)
}
