package ccl

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// HostOrder says in which order the hosts of a Comm follow each other in the algorithms of the CPU engine, such as
// rings.
type HostOrder uint8

const (
	// OrderRanks is the order of the hosts' first ranks.
	OrderRanks HostOrder = iota
	// OrderLinks is an order in which the slowest link that a ring takes is about as fast as it can be. For it the
	// links between all pairs of hosts are measured when the job starts, which takes some seconds between slow
	// ones. It is kept by Split, Shrink and Replace; Grow measures the links of new hosts. See [Reorder].
	OrderLinks
)

// HostLink is what was measured between one host and another.
type HostLink struct {
	// Bandwidth is in bytes a second, of one connection and in one direction. 0: it was not measured.
	Bandwidth float64
	// RoundTrip is the time that a small message and its answer take.
	RoundTrip time.Duration
}

// mostOrdered is the most hosts whose links are measured.
const mostOrdered = 64

// MeasureLinks measures the links between the hosts of c, and returns them by numbers of hosts, as [Place] has them:
// links[i][j] is from host i to host j. It is a collective: all ranks get the same. At most one pair of a host is
// measured at a time, with at most 1 MB in each direction. With more than 64 hosts it is ErrUnsupported.
func MeasureLinks(ctx context.Context, c *Comm) (links [][]HostLink, err error) {
	if err := callable(ctx, c, named("MeasureLinks")); err != nil {
		return nil, err
	}
	return measureLinks(ctx, c, nil)
}

// Reorder measures the links between the hosts of c, as [MeasureLinks] does, and orders the hosts by them, as
// [OrderLinks] says, for all calls that follow, and in the Comms that Split, Subset, Replace and Grow make of c. So has
// the Comm of a Shrink with Options.Order, for which its ranks compare what they know of the links; without, call
// Reorder again. It is a collective. The order of a sum follows that of the hosts, so its bits may be others than
// before, the same on all ranks.
func Reorder(ctx context.Context, c *Comm) error {
	if err := callable(ctx, c, named("Reorder")); err != nil {
		return err
	}
	return orderByLinks(ctx, c, nil)
}

// knownLinks are the links that a rank of a Comm knows. Any goroutine may read them.
type knownLinks struct {
	table atomic.Pointer[linkTable] // nil: none
}

// linkTable are links between hosts of a job, by their numbers there: those that were measured, and no others. So it
// does not grow with the hosts of the job, but with the measurements of a Comm and of those that it comes from: by the
// links between mostOrdered hosts at most each, and mostly by the same ones again. It never changes, so Comms share it.
type linkTable struct {
	measured map[[2]int]HostLink // from host, to host
	times    int64               // that links were measured on the way to it
}

// clone are the same links for another Comm, which may come to know others.
func (k *knownLinks) clone() *knownLinks {
	n := new(knownLinks)
	n.table.Store(k.table.Load())
	return n
}

// between are the links between those hosts of the job, unknown ones where k has none.
func (k *knownLinks) between(of []int) [][]HostLink {
	links, t := make([][]HostLink, len(of)), k.table.Load()
	for i, from := range of {
		links[i] = make([]HostLink, len(of))
		for j, to := range of {
			if t != nil {
				links[i][j] = t.measured[[2]int{from, to}]
			}
		}
	}
	return links
}

// keep has k know those links between hosts of eng as well, which are newer than what it knows.
func (k *knownLinks) keep(links [][]HostLink, eng *cpu.Comm, times int64) {
	t := &linkTable{measured: map[[2]int]HostLink{}, times: times}
	if old := k.table.Load(); old != nil {
		maps.Copy(t.measured, old.measured)
	}
	of := hostsOf(eng)
	for i, row := range links {
		for j, l := range row {
			if pair := [2]int{of[i], of[j]}; l.Bandwidth > 0 {
				t.measured[pair] = l
			} else {
				delete(t.measured, pair)
			}
		}
	}
	k.table.Store(t)
}

// times is how often links were measured.
func (k *knownLinks) times() int64 {
	if t := k.table.Load(); t != nil {
		return t.times
	}
	return 0
}

// agree has all ranks of eng, a new Comm, know the same links between its hosts. Before, some may know others: those
// that have ended a Reorder in which a rank was lost, those that come to a Subset after a Reorder and not before it,
// and spares. The links that were measured last count. An error fails eng.
func (k *knownLinks) agree(ctx context.Context, eng *cpu.Comm) error {
	if !isOrdered(eng) {
		return nil
	}
	returned := false
	defer func() {
		if !returned { // as in meetIn
			eng.Close()
		}
	}()
	err := k.compare(ctx, eng)
	returned = true
	return err
}

// compare is agree between three hosts or more.
func (k *knownLinks) compare(ctx context.Context, eng *cpu.Comm) error {
	of, sum := hostsOf(eng), fnv.New64a()
	links := k.between(of)
	table := tableOf(links)
	sum.Write(bytesOf(table))
	hash, t := int64(sum.Sum64()>>1), vote{ctx, eng}
	said := []int64{hash, -hash, -k.times()}
	if err := t.min(said); err != nil || said[0] == -said[1] {
		return err
	}
	last, who := -said[2], []int64{int64(eng.Size())}
	if k.times() == last {
		who[0] = int64(eng.Rank())
	}
	if err := t.min(who); err != nil {
		return err
	}
	if int64(eng.Rank()) != who[0] {
		clear(table)
	}
	b := bytesOf(table)
	if err := t.run(op.AllReduce, TypeUint64, Max, b, b); err != nil { // the other ranks have zeros
		return err
	}
	k.keep(linksOf(table, len(of)), eng, last)
	return nil
}

// isOrdered reports whether the hosts of eng may have an order by links: there is only one of two, and of more than
// mostOrdered none are measured.
func isOrdered(eng *cpu.Comm) bool {
	n := eng.Topology().Nodes()
	return n > 2 && n <= mostOrdered
}

// tableOf are links as bits, two words each: bandwidth and round trip.
func tableOf(links [][]HostLink) (table []uint64) {
	for _, row := range links {
		for _, l := range row {
			table = append(table, math.Float64bits(l.Bandwidth), uint64(l.RoundTrip))
		}
	}
	return table
}

// linksOf are the links between n hosts that table has.
func linksOf(table []uint64, n int) [][]HostLink {
	links := make([][]HostLink, n)
	for i := range n * n {
		links[i/n] = append(links[i/n], HostLink{math.Float64frombits(table[2*i]), time.Duration(table[2*i+1])})
	}
	return links
}

// keepLinks orders the hosts of c by links between them.
func keepLinks(links [][]HostLink, c *Comm) {
	k := c.opt.links
	k.keep(links, c.eng, k.times()+1)
	k.order(c.eng)
}

// hostsOf are the hosts of the job, by host of eng.
func hostsOf(eng *cpu.Comm) []int {
	topo, job := eng.Topology(), eng.Control().Site.Job.World.Topo
	of := make([]int, topo.Nodes())
	for i := range of {
		of[i] = job.Node(eng.World(topo.Rank(i, 0)))
	}
	return of
}

// order orders the hosts of eng, a Comm of the same job, on all its ranks alike.
func (k *knownLinks) order(eng *cpu.Comm) {
	if k.table.Load() == nil || !isOrdered(eng) {
		return
	}
	eng.Control().Group.OrderHosts(algo.Tour(costsOf(k.between(hostsOf(eng)))))
}

// orderedBytes is the size of the messages that an order is for.
const orderedBytes = 1 << 20

// costsOf are how many seconds a large message takes over each of links. One that was not measured counts as the median
// of those that were: were it dearer than all, some new hosts would outweigh what is known of the others.
func costsOf(links [][]HostLink) [][]float64 {
	cost, known := make([][]float64, len(links)), []float64(nil)
	for i, row := range links {
		cost[i] = make([]float64, len(row))
		for j, l := range row {
			if l.Bandwidth > 0 {
				cost[i][j] = l.RoundTrip.Seconds() + orderedBytes/l.Bandwidth
				known = append(known, cost[i][j])
			}
		}
	}
	median := 1.
	if slices.Sort(known); len(known) > 0 {
		median = known[len(known)/2]
	}
	for i, row := range links {
		for j, l := range row {
			if l.Bandwidth <= 0 {
				cost[i][j] = median
			}
		}
	}
	return cost
}

// olderLinks are those of a Comm that has grown, for the one that it becomes, in which its ranks keep their numbers.
type olderLinks struct {
	nodeOf []int // by rank
	links  [][]HostLink
}

// in returns those between the hosts of c, nil if none were measured.
func (k *knownLinks) in(c *Comm) *olderLinks {
	if k.table.Load() == nil {
		return nil
	}
	topo := c.eng.Topology()
	old := &olderLinks{nodeOf: make([]int, c.Size()), links: k.between(hostsOf(c.eng))}
	for r := range old.nodeOf {
		old.nodeOf[r] = topo.Node(r)
	}
	return old
}

// orderByLinks measures what old does not know, and orders c's hosts. Rank 0's old counts.
func orderByLinks(ctx context.Context, c *Comm, old *olderLinks) error {
	links, err := measureLinks(ctx, c, old)
	if err == nil {
		keepLinks(links, c)
	}
	return err
}

// The sizes of the messages by which a link is measured, and the time after which a larger one is not sent.
const (
	leastProbe = 64 << 10
	mostProbe  = 512 << 10
	probeLimit = 150 * time.Millisecond
)

// measureLinks is MeasureLinks, with what rank 0 knows of links already.
func measureLinks(ctx context.Context, c *Comm, old *olderLinks) ([][]HostLink, error) {
	topo := c.eng.Topology()
	n := topo.Nodes()
	if n > mostOrdered {
		return nil, c.refuse("MeasureLinks", ErrUnsupported,
			fmt.Errorf("the job has %d hosts; the links of at most %d are measured", n, mostOrdered))
	}
	table := make([]float64, 2*n*n) // bandwidth and seconds of each
	for i := range n {
		for j := range n {
			a, b := topo.Rank(i, 0), topo.Rank(j, 0)
			if old == nil || a >= len(old.nodeOf) || b >= len(old.nodeOf) {
				continue
			}
			l := old.links[old.nodeOf[a]][old.nodeOf[b]]
			table[2*(i*n+j)], table[2*(i*n+j)+1] = l.Bandwidth, l.RoundTrip.Seconds()
		}
	}
	if err := Broadcast(ctx, c, table, 0); err != nil {
		return nil, err
	}
	me := topo.Node(c.Rank())
	mine := slices.Clone(table[2*me*n : 2*(me+1)*n])
	if topo.Local(c.Rank()) == 0 {
		data := make([]byte, mostProbe)
		for round := range n + n%2 - 1 {
			peer := opponent(me, round, n)
			if peer < 0 || table[2*(me*n+peer)] > 0 && table[2*(peer*n+me)] > 0 {
				continue
			}
			l, err := measurePair(ctx, c, topo.Rank(peer, 0), me < peer, data)
			if err != nil {
				return nil, err
			}
			mine[2*peer], mine[2*peer+1] = l.Bandwidth, l.RoundTrip.Seconds()
		}
	} else {
		clear(mine)
	}
	all := make([]float64, len(mine)*c.Size())
	if err := AllGather(ctx, c, all, mine); err != nil {
		return nil, err
	}
	links := make([][]HostLink, n)
	for i := range n {
		row := all[len(mine)*topo.Rank(i, 0):][:len(mine)]
		for j := range n {
			l := HostLink{row[2*j], time.Duration(row[2*j+1] * float64(time.Second))}
			if !(l.Bandwidth >= 0) || math.IsInf(l.Bandwidth, 0) || l.RoundTrip < 0 {
				return nil, c.refuse("MeasureLinks", ErrBackend, errors.New("a rank has measured what cannot be"))
			}
			links[i] = append(links[i], l)
		}
	}
	return links, nil
}

// opponent is whom player me of n plays in that round of a tournament in which each plays each once, -1 for nobody.
func opponent(me, round, n int) int {
	m := n + n%2 - 1 // one stands still and the others go round it
	at := func(i int) int {
		if i == m {
			return round
		}
		if j := (2*round - i + 2*m) % m; j != i {
			return j
		}
		return m
	}
	if p := at(me); p < n {
		return p
	}
	return -1
}

// measurePair measures the link to peer, and then has peer measure the one from there; or the other way round.
func measurePair(ctx context.Context, c *Comm, peer int, first bool, data []byte) (l HostLink, err error) {
	for _, sends := range []bool{first, !first} {
		if !sends {
			if err := answerProbes(ctx, c, peer, data); err != nil {
				return l, err
			}
			continue
		}
		if l, err = probe(ctx, c, peer, data); err != nil {
			return l, err
		}
	}
	return l, nil
}

// probe sends larger and larger messages, each of which is answered: a connection needs some to come to its rate.
func probe(ctx context.Context, c *Comm, peer int, data []byte) (l HostLink, err error) {
	exchange := func(size int) (time.Duration, error) {
		began := time.Now()
		err := SendValue(ctx, c, size, peer)
		if err == nil && size > 0 {
			err = Send(ctx, c, data[:size], peer)
		}
		if err == nil {
			_, err = RecvValue[int](ctx, c, peer)
		}
		return time.Since(began), err
	}
	l.RoundTrip = time.Hour
	for i := range 4 { // the first makes the connection
		took, err := exchange(0)
		if err != nil {
			return l, err
		}
		if i > 0 {
			l.RoundTrip = min(l.RoundTrip, max(took, time.Microsecond))
		}
	}
	for size := leastProbe; size <= mostProbe; size *= 2 {
		took, err := exchange(size)
		if err != nil {
			return l, err
		}
		// Not the best of all: routers let the first bytes pass at any rate. A link as fast as its answers are late is
		// not told from a faster one.
		l.Bandwidth = float64(size) / max(took-l.RoundTrip, took/2, time.Microsecond).Seconds()
		if took > probeLimit {
			break
		}
	}
	_, err = exchange(-1)
	return l, err
}

// answerProbes is the peer's part in probe.
func answerProbes(ctx context.Context, c *Comm, peer int, data []byte) error {
	for {
		size, err := RecvValue[int](ctx, c, peer)
		if err == nil && size > len(data) {
			err = c.refuse("MeasureLinks", ErrBackend, fmt.Errorf("rank %d sends a probe of %d bytes", peer, size))
		}
		if err == nil && size > 0 {
			err = Recv(ctx, c, data[:size], peer)
		}
		if err == nil {
			err = SendValue(ctx, c, 0, peer)
		}
		if err != nil || size < 0 {
			return err
		}
	}
}
