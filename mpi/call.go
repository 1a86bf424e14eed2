package mpi

import (
	"fmt"
	"unsafe"
)

// Kind is a function of MPI.
type Kind uint8

// The kinds of calls.
const (
	_ Kind = iota
	KindBarrier
	KindBcast
	KindReduce
	KindAllReduce
	KindScan
	KindReduceScatter
	KindReduceScatterV
	KindGather
	KindGatherV
	KindScatter
	KindScatterV
	KindAllGather
	KindAllGatherV
	KindAllToAll
	KindAllToAllV
	KindSend
	KindRecv
	KindSendRecv
	KindExscan
	kindDup   // a duplicate of the communicator, which is the Status's Count
	kindProbe // what the next message is
	kindEnd
)

var kindNames = [kindEnd]string{
	"", "Barrier", "Bcast", "Reduce", "AllReduce", "Scan", "ReduceScatter", "ReduceScatterV", "Gather", "GatherV",
	"Scatter", "ScatterV", "AllGather", "AllGatherV", "AllToAll", "AllToAllV", "Send", "Recv", "SendRecv", "Exscan",
	"Dup", "Probe",
}

// String is the name of the function that makes such calls.
func (k Kind) String() string {
	if k == 0 || k >= kindEnd {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

func (k *Call) rooted() bool {
	switch k.Kind {
	case KindBcast, KindReduce, KindGather, KindGatherV, KindScatter, KindScatterV:
		return true
	}
	return false
}

// Ranks and tags with a meaning of their own.
const (
	AnySource = -1 // Recv takes a message from any rank
	AnyTag    = -1 // and with any tag
	ProcNull  = -2 // no rank: a Send to it and a Recv from it do nothing

	// MaxTag is the greatest tag that every MPI has; this package uses the one above.
	MaxTag = 32766
	ownTag = MaxTag + 1
)

// Call is one call on memory given by its address, for what the typed functions lack: element types
// known only at run time, and memory of a device where the MPI library can reach that. The addresses
// must stay valid, and not be those of a goroutine's stack, until the call is done.
type Call struct {
	Kind Kind
	Type Type
	Op   Op
	Root int // or where Recv and SendRecv receive from
	To   int // where Send and SendRecv send to
	Tag  int // of Send, Recv and SendRecv

	Dst, Src uintptr // 0 where this rank has none
	// N is the elements: of the vector (Bcast, Reduce, AllReduce, Scan, Exscan), of one rank's block
	// (Gather, Scatter, AllGather, AllToAll, ReduceScatter), of this rank's block (GatherV,
	// ScatterV, AllGatherV), of the message (Send, Recv; SendRecv's received one).
	N int
	M int // elements that SendRecv sends
	// DC are the counts by rank of the V kinds; AllToAllV has DC for Dst and SC for Src.
	DC, SC []int
	// InPlace says that only one of the addresses counts: Src for Scatter and ScatterV, else Dst.
	InPlace bool

	keep [2]unsafe.Pointer // Dst and Src of slices: to the heap with them, and pinned while MPI has them
}

// memory is k's, as what keeps it from the garbage collector.
func (k *Call) memory() [2]unsafe.Pointer { return [2]unsafe.Pointer{at(k.Dst), at(k.Src)} }

// piece is k on n elements of its memory from element i on.
func (k *Call) piece(i, n int) Call {
	p := *k
	p.N, p.M = n, 0
	if p.Dst != 0 {
		p.Dst += uintptr(i * k.Type.Size())
	}
	if p.Src != 0 {
		p.Src += uintptr(i * k.Type.Size())
	}
	return p
}

// halves are the Recv and the Send that a SendRecv is.
func (k *Call) halves() (recv, send Call) {
	recv, send = *k, *k
	recv.Kind, recv.M = KindRecv, 0
	send.Kind, send.N, send.M = KindSend, k.M, 0
	return recv, send
}

// check refuses what must not get as far as MPI: a count or a rank that would be one of MPI's special
// numbers, or beyond the communicator, which a library built without error checking takes.
func (k *Call) check(size int) error {
	switch {
	case k.Kind == 0 || k.Kind >= kindDup:
		return refused(k.Kind, ErrArg, "no such kind of call")
	case k.Type >= typePlaced || k.Type == 0 && k.Kind != KindBarrier: // C has tables of both
		return refused(k.Kind, ErrType, "%v is not a type", k.Type)
	case k.Op >= opFirst:
		return refused(k.Kind, ErrOp, "%v is not an operator", k.Op)
	case k.N < 0 || k.M < 0:
		return refused(k.Kind, ErrCount, "a count of %d", min(k.N, k.M))
	case k.Kind.message() && len(k.DC)+len(k.SC) > 0, k.Kind < KindAllToAllV && len(k.SC) > 0:
		return refused(k.Kind, ErrCount, "counts by rank, which it does not take") // C reads as many as there are ranks
	case k.Kind.message():
		return k.checkPeers(size)
	}
	if k.rooted() && (k.Root < 0 || k.Root >= size) {
		return refused(k.Kind, ErrRoot, "no rank %d: the ranks are 0 to %d", k.Root, size-1)
	}
	counts := 0
	switch k.Kind {
	case KindReduceScatterV, KindGatherV, KindScatterV, KindAllGatherV, KindAllToAllV:
		counts = size
	}
	if len(k.DC) != counts {
		return refused(k.Kind, ErrCount, "%d counts for %d ranks", len(k.DC), size)
	}
	if k.Kind == KindAllToAllV && len(k.SC) != counts {
		return refused(k.Kind, ErrCount, "%d counts for %d ranks", len(k.SC), size)
	}
	for _, counts := range [...][]int{k.DC, k.SC} {
		for _, n := range counts {
			if n < 0 {
				return refused(k.Kind, ErrCount, "a count of %d", n)
			}
		}
	}
	return nil
}

func (k *Call) checkPeers(size int) error {
	receives := k.Kind == KindRecv || k.Kind == kindProbe // and sends nothing
	if !receives && (k.To < 0 && k.To != ProcNull || k.To >= size) {
		return refused(k.Kind, ErrRank, "no rank %d to send to: the ranks are 0 to %d", k.To, size-1)
	}
	if k.Kind != KindSend && (k.Root < ProcNull || k.Root >= size) {
		return refused(k.Kind, ErrRank, "no rank %d to receive from: the ranks are 0 to %d", k.Root, size-1)
	}
	if k.Tag < 0 && (!receives || k.Tag != AnyTag) {
		return refused(k.Kind, ErrTag, "a tag of %d", k.Tag)
	}
	if process.maxTag > 0 && k.Tag > process.maxTag { // 0 before Init
		return refused(k.Kind, ErrTag, "a tag of %d; the largest in this library is %d", k.Tag, process.maxTag)
	}
	return nil
}
