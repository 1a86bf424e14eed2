package engine

// Kind says which collective a call is. The values are those of ccl.Kind.
type Kind uint8

// The kinds of calls.
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
	GroupOfCalls
	SymmetricWindow
	GraphLaunch
	Shrink
)

// Type is an element type. The values are those of ccl.Type.
type Type uint8

// The element types.
const (
	None Type = iota
	Int8
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	Float8E4M3
	Float8E5M2
)

// Op is a reduction operator. The values are those of ccl.Op.
type Op uint8

// The operators.
const (
	Sum Op = iota
	Prod
	Min
	Max
	Avg
	Scaled // the sum of elements multiplied by Call.Factor
)

// Call is one call, whose arguments package ccl has checked. The addresses are of host or of
// device memory; of a Go slice they stay valid only while the call runs, and the caller keeps it alive.
// In place is: equal addresses, or for Gather, AllGather, Scatter and ReduceScatter the place
// of this rank's block in the whole.
type Call struct {
	Kind     Kind
	Type     Type
	Op       Op
	Root     int     // or peer: Send's, Recv's, SendRecv's source; -1 if there is none
	To       int     // SendRecv's destination
	Count    int     // elements: of the vector (AllReduce, Reduce, Broadcast), of one rank's block (AllGather, Gather, Scatter, ReduceScatter, AllToAll), of the message (Send, Recv; SendRecv's received one)
	Sent     int     // elements that SendRecv sends
	Dst, Src uintptr // 0 where this rank has none
	Factor   float64 // of Scaled
	DC, SC   []int   // counts in elements by rank: of the V kinds DC; of AllToAllV DC for Dst and SC for Src
}
