// Package tuning has the numbers by which the CPU engine chooses between ways to do the same: a
// table with a row for each family of CPUs, thresholds that hold for all of them, and sizes that
// depend on how many ranks share a host. Which row is this machine's, package machine knows: no
// other code of the engine asks for the model of the CPU.
//
// The numbers are measurements, most of them of one machine (docs/performance.md). `make tune`
// measures another machine and proposes values. How long a wait looks, gives way and sleeps
// (package plane), and the chunks of a pipe (package links), stay beside their code: they are the
// same on every family of CPUs. Between hosts, internal/algo/choose.go has the table of algorithms.
package tuning

import "math"

// Family is what differs between families of CPUs.
type Family struct {
	// Maker is what CPUID says; "" is any other CPU, and a build that leaves the assembly out.
	Maker string
	// MoveString: REP MOVSB is the fastest copy, also of lines that another core has, and Go's memmove does not use it.
	MoveString bool
	Layout
}

// Layout is what decides where the data of a call lie, and how ranks get at them. So all ranks of a
// host must have the same, whatever they were built with: the first process of a host decides for
// all (watch.LayoutOf). It lies in memory that processes share, and so has no pointers.
type Layout struct {
	// ClaimAhead: a rank that has posted a payload claims the lines of its next one (PREFETCHW), of
	// which the other of two ranks has copies. On an Intel CPU that took a quarter off an AllReduce of
	// 512 bytes to 2 KiB; on a Zen 5 one of 2 KiB took 1.4 times as long.
	ClaimAhead bool
	// ClaimSent: so does the sender in a call with a root, for payloads of up to so many bytes. On a
	// Zen 5 Broadcasts of 128 and 256 bytes took 0.6 of the time by it; at 1 KiB nothing was gained.
	ClaimSent int
	// SentAhead: the sender in a call with a root also claims the lines of the round that lies so many
	// after the one it posts. A claim takes longer than a small call: with that of the next round alone
	// the sender waits for its lines. On a Zen 5 whose ranks share no core, calls of 8 and 64 bytes took
	// 0.65 to 0.7 of the time with 3; with 6 they took longer again. Where two ranks share a core it
	// makes no difference.
	SentAhead Ahead
	// FetchAhead: a rank that receives a stream asks for the payload so many rounds ahead. On an Intel
	// CPU a loop of calls of 8 to 512 bytes took a third less by it. On a Zen 4 Broadcasts, Gathers and
	// Reduces of 8 and 64 bytes took 0.8 to 0.85 of the time by one round; with two, Scatters took
	// longer, and so did all calls of 128 bytes and more.
	FetchAhead Ahead
	// ReadOthers: process_vm_readv beats staging memory, among ranks that have a core each (docs/measured).
	ReadOthers bool
	// ReadMovedFrom: from so many bytes on it beats them, however many ranks there are, in calls that
	// move data from each rank to one other: what is staged there is read but once. SendRecv, Send,
	// Scatter and AllToAll are such calls; between two ranks Broadcast, AllGather and large Gathers
	// are, too. 0: never.
	ReadMovedFrom int
	// WholeTwo is how many bytes of an AllReduce with two ranks lie in the slots, at most SlotRoom(2).
	// On AMD's CPUs that is all the room there is: otherwise the ranks meet twice for memory in place,
	// or read once more what they have staged. On Intel's CPUs the lines of a slot take longer than
	// that.
	WholeTwo int
	// SwapFrom: two ranks that both send so many bytes in a round, or more, swap the lines of their
	// slots at each use, and a rank that reads lines claims them, since it writes there next: so each
	// line travels once. 0: never. On a Zen 4 AllReduces and AllGathers of 4 KiB took 0.63 and 0.60 of
	// the time by it. Payloads below LineFrom begin in the flag's line.
	SwapFrom int
	// Ring is the size, in bytes, of the ring for what a rank sends alone, among up to 8 ranks; 0: as
	// small as it can be. In a ring that L2 holds, each line that the sender writes has to be taken
	// back from the receivers. On a Zen 4, with 1 MiB of L2 each, Broadcasts and Reduces with two
	// ranks took 0.25 to 0.5 of the time in a ring that only L3 holds, from 4 to 64 KiB, and
	// Broadcasts and Scatters with 4 and 8 ranks 0.6 to 0.8.
	Ring int
	// StreamTo is how many bytes of a vector go through that ring between two ranks.
	StreamTo int
	// StageSharedTo: two ranks stage an AllReduce of so many bytes on MakeSlice memory, or twice as
	// many in place, as they do ordinary slices: there lines travel once, and the ranks meet once. On
	// a Zen 4 8 KiB took 0.9 of the time by it and in place 0.5, 16 KiB in place 0.8. On an Intel CPU
	// staging takes longer.
	StageSharedTo int

	// From here on, results are written by stores that pass the caches: bytes of a result,
	StreamFrom          int
	StreamReduceFrom    int // in Reduce,
	StreamAllReduceFrom int // in AllReduce,
	StreamOwnOver       int // and more than so many bytes of results and of what a rank sends itself: what L2 holds.
}

// Ahead says how many rounds ahead lines are asked for, for payloads of up to To bytes.
type Ahead struct {
	Rounds uint32
	To     int
}

// families is the table. The last row stands for every CPU that no other row names.
var families = []Family{
	{
		Maker: "GenuineIntel",
		Layout: Layout{
			ClaimAhead: true, ClaimSent: 2 << 10, FetchAhead: Ahead{2, 2 << 10}, ReadOthers: true,
			WholeTwo: 2 << 10, StreamTo: 64 << 10,
			StreamFrom: 4 << 20, StreamReduceFrom: 1 << 20, StreamAllReduceFrom: 32 << 20, StreamOwnOver: 2 << 20,
		},
	},
	{
		Maker: "AuthenticAMD", MoveString: true,
		Layout: Layout{
			ClaimSent: 512, SentAhead: Ahead{3, 64}, FetchAhead: Ahead{1, 64}, ReadMovedFrom: 128 << 10,
			WholeTwo: 4 << 10, SwapFrom: LineFrom, Ring: 2 << 20, StreamTo: 256 << 10, StageSharedTo: 8 << 10,
			StreamFrom: 4 << 20, StreamReduceFrom: 4 << 20, StreamAllReduceFrom: 4 << 20, StreamOwnOver: math.MaxInt,
		},
	},
	{
		Maker: "",
		Layout: Layout{
			WholeTwo: 4 << 10, StreamTo: 64 << 10,
			StreamFrom: 4 << 20, StreamReduceFrom: 4 << 20, StreamAllReduceFrom: 4 << 20, StreamOwnOver: math.MaxInt,
		},
	},
}

// RowOf is row number row of the table, from 1, or with 0 that of CPUs of that maker.
func RowOf(maker string, row int) Family {
	if row > 0 && row <= len(families) {
		return families[row-1]
	}
	for _, f := range families {
		if f.Maker == maker {
			return f
		}
	}
	return families[len(families)-1]
}

// How a call on one host gets at the data of the other ranks, by its size.
const (
	// Bytes that a rank reads from another. From here on, reading memory beats staging,
	ReadFrom        = 16 << 10
	ReadMessageFrom = 8 << 10   // in SendRecv, where it beats the pipe,
	ReadAsideFrom   = 256 << 10 // of a message that is copied first, since it is in place,
	ReadRootFrom    = 64 << 10  // in Broadcast and Gather, where one rank reads and the other waits,
	ReadRootTo      = 4 << 20   // up to here in Broadcast, in which the root has nothing else to do, and in Send,
	ReadCrowdedFrom = 64 << 10  // of any size in a Send between ranks that share cores, which read messages from here on;
	ReadScatterFrom = 64 << 10  // in Scatter, whose root copies its own block while the others read.
	WriteRootFrom   = 64 << 10  // From here on, ranks write into the results of Gather's root, if they are in one process;
	AskRootFrom     = 512 << 10 // else they ask from here on whether it has MakeSlice memory.

	// Bytes of an AllReduce whose operands are read: all of them up to here, and each rank its part up to there;
	ReadAllTo    = 512 << 10
	ReadHalvesTo = 64 << 20
	// between two ranks, which stage all of a small vector with the offer, only from here on.
	ReadTwoFrom     = 10 << 10
	ReadInPlaceFrom = 4 << 20 // where each half goes twice
	// among more ranks, only if a part has so many: each rank makes 2(n-1) system calls, of 3 us where all read at once
	// (16 cores of a Xeon).
	ReadPartFrom = 64 << 10

	HugeResultsFrom   = 4 << 20  // results into which others' memory is read, which are gathered in huge pages
	StreamInPlaceFrom = 64 << 20 // bytes of all operands and results, where each rank writes into the results of all
	MaxDirect         = 64       // ranks that do so: more share so few bytes of memory bandwidth that staging is no worse
	EdgesAlone        = 4        // ranks that each reduce all that lies in pages which are not a result's own,
	EdgesAloneTo      = 8 << 10  // if that is no more than this; else each reduces a part and stages it
	FuseMax           = 64 << 10 // bytes of small calls that become one: beyond that a copy costs more than a call
)

// How much is worked on at a time.
const (
	ClaimPiece    = 4 << 10   // claimed ahead of what is worked on: half of L1's lines may be on their way
	FoldPiece     = 8 << 10   // summed: it stays in L1
	DirectPieces  = 16        // of these, between two looks at the abort word: some 20 microseconds
	ReadPiece     = 128 << 10 // read from another process: a system call is not preempted, and this stays in L2
	LentPiece     = 64 << 10  // copied by its owner for a rank that may not read it
	PreemptPiece  = 512 << 10 // copied between two points at which the scheduler may preempt: some 40 microseconds
	SlicePiece    = 4 << 20   // of a vector, where a rank needs memory beside the caller's, whatever the vector's size
	SyscallPiece  = 512 << 10 // sent or received by one system call, which is not preempted
	WirePiece     = 256 << 10 // the same for what is to be combined: each rank keeps a buffer of this size
	HeaderPayload = 4 << 10   // copied beside the header of a message: one system call, for less than a second one costs
)

// ConnLooks is how often a rank looks at its connections before it yields: each look is a system
// call that takes the socket's lock from the kernel's receiving side, and costs as much as a yield.
const ConnLooks = 4
