// Package algo holds the schedules of the collectives: who sends what to whom, when.
//
// An algorithm is a pure function from (kind, topology, rank, root) to a list of steps. It moves
// nothing itself: one executor runs the steps over any transport, and Check, in the tests, proves
// them. A job may have a hundred thousand ranks, so a schedule computes each step when asked for it
// and holds O(1) memory.
//
// # The vector
//
// Every rank has a working vector V, cut into Schedule.Parts parts. Part p belongs to rank p in
// ReduceScatter, AllGather, Gather and Scatter, which have one part for each rank; elsewhere the
// algorithm chooses how many parts it cuts V into, evenly.
//
//	kind           V holds before               V holds after
//	AllReduce      own contribution everywhere  all contributions everywhere, on every rank
//	Reduce         own contribution everywhere  all contributions everywhere, at root
//	ReduceScatter  own contribution everywhere  all contributions in part rank
//	AllGather      own data in part rank        all parts, on every rank
//	Gather         own data in part rank        all parts, at root
//	Broadcast      all parts, at root           all parts, on every rank
//	Scatter        all parts, at root           its own data in part rank
//
// What a rank's V holds besides is scratch. AllToAll has no V but blocks: sending part p is sending
// the source block for rank p; receiving part q is receiving rank q's block into the destination
// block of q. Copying the own block is the executor's business. Barrier sends empty messages.
//
// # Combining
//
// A receive that reduces combines what the peer sent with what the part holds, the operand of the
// lower rank first: received op V if Peer < rank, V op received otherwise. This is a rule about the
// two ranks alone, so two ranks that swap partial results compute the same bits.
//
// # Choices
//
// Algorithms are data. One executor runs a schedule, and one checker proves it for every number of
// ranks up to 64 and every root: no deadlock, each contribution exactly once, the same expression
// on all ranks. The same steps give the costs of docs/costs.md.
//
// Operands are in rank order, so a result never depends on timing: the same ranks with the same
// sizes and placement get the same bits again. RankOrder asks for more: the fold from rank 0 on,
// whatever the algorithm. It costs more: see chain.
//
// Recursive doubling swaps. Two ranks exchange partial sums, and both reduce into what they send.
// The plain solution is a second buffer of the vector's size. Such a schedule says Swap instead,
// and the executor combines only what has left already. The checker refuses Swap anywhere else.
package algo

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/op"
)

// collectives are the kinds that have schedules, in the order of docs/costs.md. See the package
// comment for what each leaves where.
var collectives = []op.Kind{op.Barrier, op.Broadcast, op.Reduce, op.AllReduce, op.ReduceScatter, op.AllGather,
	op.Gather, op.Scatter, op.AllToAll}

// names are the collectives as people give them.
func names() string {
	var all []string
	for _, k := range collectives {
		all = append(all, k.Flag())
	}
	return strings.Join(all, ", ")
}

// A Move is one message: the parts [Lo, Hi) to or from Peer. If Lo == Hi it is
// empty, yet it is sent. One of parts that are empty in a call, because the vector
// is short, may be left out, since both sides know.
type Move struct {
	Peer, Lo, Hi int
	Reduce       bool // of a receive: combine with what the parts hold; otherwise replace it
}

// A Step is what a rank does at once. Its moves run concurrently, but that several
// receives which reduce into one part combine in the order listed. What a step
// sends is what the parts held before the step.
type Step struct {
	Send, Recv []Move
}

// A Schedule is one rank's part in a collective: its steps, run one after another.
// Between an ordered pair of ranks messages match first in, first out, and in a
// step in the order listed.
type Schedule struct {
	Name  string // the algorithm
	Parts int    // how many parts V is cut into; at least 1
	Steps int

	// Swap says that some step reduces into a part which that step also sends, as
	// recursive doubling must: the executor then has to combine only what has left,
	// or send a copy. No step ever replaces a part that it sends.
	Swap bool

	at func(k int, st *Step)
}

// At sets *st to step k, 0 <= k < Steps, reusing its slices. Steps may be asked for
// in any order, by any number of goroutines.
func (s Schedule) At(k int, st *Step) {
	st.Send, st.Recv = st.Send[:0], st.Recv[:0]
	if 0 <= k && k < s.Steps {
		s.at(k, st)
	}
}

// A builder is one algorithm for one kind, on at least two ranks. It sets all of
// the Schedule but its Name; root counts only where the kind has one.
type builder func(t Topology, rank, root int) Schedule

// An algorithm is a family of schedules that share an idea and so a name.
type algorithm struct {
	name     string
	build    [op.Kinds]builder
	fromLeft bool // it reduces strictly in rank order, which Check then asks for
}

// algorithms is the one list of what there is, in the order Names gives.
var algorithms = []algorithm{
	{"ring", [op.Kinds]builder{op.AllReduce: ringAllReduce, op.ReduceScatter: ringReduceScatter,
		op.AllGather: ringAllGather}, false},
	{"doubling", [op.Kinds]builder{op.AllReduce: doublingAllReduce}, false},
	{"halving", [op.Kinds]builder{op.AllReduce: halvingAllReduce}, false},
	{"dissemination", [op.Kinds]builder{op.Barrier: disseminationBarrier, op.AllReduce: disseminationAllReduce,
		op.ReduceScatter: disseminationReduceScatter, op.AllGather: disseminationAllGather}, false},
	{"tree", [op.Kinds]builder{op.Barrier: treeBarrier, op.Broadcast: treeBroadcast, op.Reduce: treeReduce,
		op.AllReduce: treeAllReduce, op.Gather: treeGather, op.Scatter: treeScatter}, false},
	{"hier", [op.Kinds]builder{op.Barrier: hierBarrier, op.AllReduce: hierAllReduce}, false},
	{"hier-ring", [op.Kinds]builder{op.AllReduce: hierRingAllReduce}, false},
	{"scatter-ring", [op.Kinds]builder{op.Broadcast: scatterRingBroadcast, op.Reduce: scatterRingReduce}, false},
	{"chain", [op.Kinds]builder{op.Reduce: chainReduce, op.AllReduce: chainAllReduce,
		op.ReduceScatter: chainReduceScatter}, true},
	{"pairwise", [op.Kinds]builder{op.AllToAll: pairwiseAllToAll}, false},
	{"direct", [op.Kinds]builder{op.Barrier: directBarrier, op.Broadcast: directBroadcast, op.Reduce: directReduce,
		op.AllReduce: directAllReduce, op.ReduceScatter: directReduceScatter, op.AllGather: directAllGather,
		op.Gather: directGather, op.Scatter: directScatter, op.AllToAll: directAllToAll}, false},
}

// Names lists the algorithms that can do k, each for any topology and root.
func Names(k op.Kind) []string {
	var found []string
	for _, a := range algorithms {
		if k.Valid() && a.build[k] != nil {
			found = append(found, a.name)
		}
	}
	return found
}

// indexOf is where algorithm name is in algorithms, or -1.
func indexOf(name string) int {
	return slices.IndexFunc(algorithms, func(a algorithm) bool { return a.name == name })
}

// Build returns the schedule of rank in algorithm name for k. A kind without a root
// ignores root. One rank alone has no steps.
func Build(name string, k op.Kind, t Topology, rank, root int) (Schedule, error) {
	n := t.Size()
	if n < 1 {
		return Schedule{}, fmt.Errorf("algo: %s %s: a topology of %d ranks; there must be at least 1", name, k.Flag(), n)
	}
	if rank < 0 || rank >= n {
		return Schedule{}, fmt.Errorf("algo: %s %s: rank %d of %d ranks; ranks are 0 to %d", name, k.Flag(), rank, n, n-1)
	}
	if k.Rooted() && (root < 0 || root >= n) {
		return Schedule{}, fmt.Errorf("algo: %s %s: root %d of %d ranks; ranks are 0 to %d", name, k.Flag(), root, n, n-1)
	}
	if !slices.Contains(collectives, k) {
		return Schedule{}, fmt.Errorf("algo: %s: no such collective; there are %s", k.Flag(), names())
	}
	i := indexOf(name)
	if i < 0 || algorithms[i].build[k] == nil {
		return Schedule{}, fmt.Errorf("algo: %q: no such algorithm for %s; there are %s", name, k.Flag(),
			strings.Join(Names(k), ", "))
	}
	if n == 1 {
		return Schedule{Name: name, Parts: 1}, nil
	}
	s := algorithms[i].build[k](t, rank, root)
	s.Name = name
	return s, nil
}
