package cpu

import (
	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// What package ccl hands to the engine, and what it hears from it.
type (
	Kind      = call.Kind
	Record    = call.Record
	Call      = call.Call
	Code      = call.Code
	Fault     = call.Fault
	Options   = plane.Options
	Bootstrap = plane.Bootstrap
	Status    = plane.Status
	Doing     = plane.Doing
	Wait      = plane.Wait
	Late      = plane.Late
)

// The kinds of calls.
const (
	AllReduce      = call.AllReduce
	Reduce         = call.Reduce
	ReduceScatter  = call.ReduceScatter
	ReduceScatterV = call.ReduceScatterV
	Broadcast      = call.Broadcast
	AllGather      = call.AllGather
	AllGatherV     = call.AllGatherV
	Gather         = call.Gather
	GatherV        = call.GatherV
	Scatter        = call.Scatter
	ScatterV       = call.ScatterV
	AllToAll       = call.AllToAll
	AllToAllV      = call.AllToAllV
	Send           = call.Send
	Recv           = call.Recv
	SendRecv       = call.SendRecv
	Barrier        = call.Barrier
	Split          = call.Split
	Group          = call.Group
	Window         = call.Window

	Scaled  = call.Scaled
	Checked = call.Checked
)

// Why a call fails.
const (
	Argument     = call.Argument
	Unsupported  = call.Unsupported
	Mismatch     = call.Mismatch
	RankLost     = call.RankLost
	Timeout      = call.Timeout
	Canceled     = call.Canceled
	Aborted      = call.Aborted
	Unauthorized = call.Unauthorized
	Version      = call.Version
	Backend      = call.Backend
	Closed       = call.Closed
)

// What a rank may be found doing.
const (
	Outside = plane.Outside
	AtWork  = plane.AtWork
	Waits   = plane.Waits
)

// ContextFault is the fault of a call whose context has ended.
func ContextFault(err error) *Fault { return call.ContextFault(err) }
