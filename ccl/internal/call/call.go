package call

import "github.com/goccl/goccl/internal/op"

// What the CPU engine calls by these names is package op's.
type (
	Kind   = op.Kind
	Type   = op.Type
	Op     = op.Op
	Record = op.Record
	Call   = op.Call
)

// The kinds of calls.
const (
	AllReduce        = op.AllReduce
	Reduce           = op.Reduce
	ReduceScatter    = op.ReduceScatter
	ReduceScatterV   = op.ReduceScatterV
	Broadcast        = op.Broadcast
	AllGather        = op.AllGather
	AllGatherV       = op.AllGatherV
	Gather           = op.Gather
	GatherV          = op.GatherV
	Scatter          = op.Scatter
	ScatterV         = op.ScatterV
	AllToAll         = op.AllToAll
	AllToAllV        = op.AllToAllV
	Send             = op.Send
	Recv             = op.Recv
	SendRecv         = op.SendRecv
	Barrier          = op.Barrier
	Split            = op.Split
	Group            = op.Group
	Window           = op.Window
	MonitoredBarrier = op.MonitoredBarrier
	Replace          = op.Replace
)

// RecordWire is the size of an encoded record.
const RecordWire = op.RecordWire

// Pieces is how many times length is needed to cover n; an empty call has one
// piece, too, so that its ranks meet.
func Pieces(n, length int) int {
	if n <= length {
		return 1
	}
	return (n + length - 1) / length
}

// OffsetsOf appends to buf where blocks of counts elements begin, and the end.
func OffsetsOf(buf []int, counts []int, elem int) []int {
	buf = append(buf[:0], 0)
	for _, n := range counts {
		buf = append(buf, buf[len(buf)-1]+n*elem)
	}
	return buf
}
