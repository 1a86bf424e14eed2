// Package op is the vocabulary of calls: the kinds of calls, the types of elements and the
// operators, with their numbers, names and sizes and what follows from them; and [Call], one call
// on its way from package ccl to what carries it out.
//
// There is one list of each. Package ccl has types of its own for users, whose numbers are these;
// the arithmetic, the schedules, the engines and the C of package native use these.
package op

import "strings"

// Kind says which collective a call is.
type Kind uint8

// The kinds of calls. Those that end in V have counts by rank.
const (
	_ Kind = iota
	AllReduce
	Reduce
	ReduceScatter
	ReduceScatterV
	Broadcast
	AllGather
	AllGatherV
	Gather
	GatherV
	Scatter
	ScatterV
	AllToAll
	AllToAllV
	Send
	Recv
	SendRecv
	Barrier
	Split
	Group  // several calls as one
	Window // memory becomes a symmetric window of a Comm
	Graph  // the launch of a graph that was captured from calls
	MonitoredBarrier
	Replace // numbers of a job are given out: to its spares, or to the workers that Shrink goes on with
	Kinds   // what is no kind begins here
)

var kinds = [Kinds]string{
	"unknown", "AllReduce", "Reduce", "ReduceScatter", "ReduceScatterV", "Broadcast", "AllGather", "AllGatherV",
	"Gather", "GatherV",
	"Scatter", "ScatterV", "AllToAll", "AllToAllV", "Send", "Recv", "SendRecv", "Barrier", "Split", "Group", "Window",
	"Graph",
	"MonitoredBarrier", "Replace",
}

// String returns the name of the function that makes such calls.
func (k Kind) String() string {
	if k >= Kinds {
		k = 0
	}
	return kinds[k]
}

// Flag returns the kind as the benchmark's -op and GOCCL_ALGO spell it: "allreduce".
func (k Kind) Flag() string { return strings.ToLower(k.String()) }

// Sets of kinds, by bits.
const (
	rooted    = 1<<Reduce | 1<<Broadcast | 1<<Gather | 1<<GatherV | 1<<Scatter | 1<<ScatterV
	blocks    = 1<<ReduceScatter | 1<<AllGather | 1<<Gather | 1<<Scatter | 1<<AllToAll
	exchanges = 1<<AllToAll | 1<<AllToAllV | 1<<SendRecv
	counted   = 1<<ReduceScatterV | 1<<AllGatherV | 1<<GatherV | 1<<ScatterV
	dataless  = 1<<Barrier | 1<<Split | 1<<Group | 1<<Window | 1<<Graph | 1<<MonitoredBarrier | 1<<Replace
)

// Valid reports whether k is a kind.
func (k Kind) Valid() bool { return k != 0 && k < Kinds }

// Reduces reports whether calls of kind k combine elements.
func (k Kind) Reduces() bool { return k >= AllReduce && k <= ReduceScatterV }

// Rooted reports whether one rank, the root, has a part of its own.
func (k Kind) Rooted() bool { return rooted>>k&1 != 0 }

// Pairwise reports whether calls of kind k are between two ranks.
func (k Kind) Pairwise() bool { return k >= Send && k <= SendRecv }

// Blocks reports whether the count of a call is that of one rank's block.
func (k Kind) Blocks() bool { return blocks>>k&1 != 0 }

// Exchanges reports whether a rank sends other elements in calls of kind k than it receives.
func (k Kind) Exchanges() bool { return exchanges>>k&1 != 0 }

// Dataless reports whether calls of kind k move no elements of the caller's.
func (k Kind) Dataless() bool { return dataless>>k&1 != 0 }

// Counted reports whether calls of kind k have counts by rank that are the same on all ranks.
func (k Kind) Counted() bool { return counted>>k&1 != 0 }

// Equal returns the kind that does with equal counts what k does with counts by rank; k itself
// where it has none.
func (k Kind) Equal() Kind {
	if k.Counted() || k == AllToAllV {
		return k - 1
	}
	return k
}
