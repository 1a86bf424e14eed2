package algo

import "github.com/goccl/goccl/internal/op"

// Spread says how ranks are placed on hosts, as far as choosing an algorithm goes.
type Spread uint8

// The placements an Entry can ask for.
const (
	AnySpread Spread = iota // whatever
	OneEach                 // one rank on each of several hosts
	Shared                  // some ranks share a host
)

// spreadOf is the placement of t.
func spreadOf(t Topology) Spread {
	if t.Nodes() == t.Size() {
		return OneEach
	}
	return Shared
}

// An Entry names the algorithm for the calls it fits: those of its Kind that are at
// least as large as all its bounds.
type Entry struct {
	Kind   op.Kind
	Spread Spread
	Bytes  int64 // bytes of the vector: all n blocks where it is made of blocks
	Share  int64 // those bytes / n
	Ranks  int
	Pow2   bool // the number of ranks is a power of two
	Name   string
}

// A Table lists entries; the first that fits a call counts.
type Table []Entry

const kib = 1 << 10

// defaults serves jobs that span hosts or talk over TCP; ranks that share memory
// have ways of their own. A ring needs shares long enough that n messages of a step
// hide each other's latency; below that the count of steps decides, and for the
// shortest vectors the count of messages.
var defaults = Table{
	{Kind: op.Barrier, Spread: OneEach, Name: "dissemination"},
	{Kind: op.Barrier, Name: "hier"},

	{Kind: op.AllReduce, Spread: OneEach, Bytes: 512*kib + 1, Share: 32*kib + 1, Ranks: 3, Name: "ring"},
	{Kind: op.AllReduce, Spread: OneEach, Share: 256*kib + 1, Name: "ring"}, // two ranks: a step more, half the arithmetic
	{Kind: op.AllReduce, Spread: OneEach, Bytes: 32*kib + 1, Ranks: 3, Pow2: true, Name: "halving"},
	{Kind: op.AllReduce, Spread: OneEach, Bytes: 128*kib + 1, Ranks: 3, Name: "dissemination"},
	{Kind: op.AllReduce, Spread: OneEach, Name: "doubling"},
	{Kind: op.AllReduce, Bytes: 512*kib + 1, Share: 1 * kib, Name: "hier-ring"},
	{Kind: op.AllReduce, Name: "hier"},

	{Kind: op.Broadcast, Bytes: 512 * kib, Share: 4 * kib, Ranks: 8, Name: "scatter-ring"},
	{Kind: op.Broadcast, Name: "tree"},
	{Kind: op.Reduce, Bytes: 512 * kib, Share: 4 * kib, Ranks: 8, Name: "scatter-ring"},
	{Kind: op.Reduce, Name: "tree"},

	{Kind: op.ReduceScatter, Bytes: 64 * kib, Share: 4 * kib, Name: "ring"},
	{Kind: op.ReduceScatter, Name: "dissemination"},
	{Kind: op.AllGather, Bytes: 64 * kib, Share: 4 * kib, Name: "ring"},
	{Kind: op.AllGather, Name: "dissemination"},

	{Kind: op.Gather, Share: 64 * kib, Name: "direct"},
	{Kind: op.Gather, Name: "tree"},
	{Kind: op.Scatter, Share: 64 * kib, Name: "direct"},
	{Kind: op.Scatter, Name: "tree"},

	{Kind: op.AllToAll, Name: "pairwise"},
}

// Defaults returns the table that Choose falls back on.
func Defaults() Table { return append(Table(nil), defaults...) }

// Choose names the algorithm for a call on a vector of bytes: the first entry of tab
// that fits, else the first of Defaults. With rankOrder whatever reduces is a chain.
// It depends on nothing but its arguments, so that ranks which agree about them
// agree about the algorithm. It is "" if k is no collective.
func Choose(k op.Kind, bytes int64, t Topology, rankOrder bool, tab Table) string {
	if rankOrder && k.Reduces() {
		return "chain"
	}
	n, spread := t.Size(), spreadOf(t)
	for _, tab := range [2]Table{tab, defaults} {
		for i := range tab {
			if e := &tab[i]; e.Kind == k && e.fits(bytes, n, spread) {
				return e.Name
			}
		}
	}
	return ""
}

// Even is name, or, where a message of that algorithm may hold parts with different numbers of
// contributions, an algorithm for k whose messages do not: what combines means needs to be told one
// number for each message. Check proves it.
func Even(name string, k op.Kind) string {
	switch {
	case name != "dissemination" || !k.Reduces():
		return name
	case k == op.AllReduce:
		return "doubling"
	}
	return "ring"
}

func (e *Entry) fits(bytes int64, n int, spread Spread) bool {
	return bytes >= e.Bytes && bytes/int64(n) >= e.Share && n >= e.Ranks &&
		(e.Spread == AnySpread || e.Spread == spread) &&
		(!e.Pow2 || n&(n-1) == 0)
}
