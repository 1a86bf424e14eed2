package ccl

import (
	"context"
	"runtime/pprof"
	"runtime/trace"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/environ"
)

// What other tools see of calls: regions of runtime/trace while a trace is taken, labels of pprof
// with GOCCL_PPROF=1, and Options.OnCall. Where none of them is wanted a call pays for two looks at
// memory.

// Observation describes a call that has ended. [Options.OnCall] receives it.
type Observation struct {
	// Call is the call as the flight recorder has it.
	Call Call
	// Comm is the Comm's name.
	Comm string
	// Took is the time from the beginning to the end of the call, by the exact clock. On a device
	// it reaches from issuing the call to when the Comm saw that its stream had passed it.
	Took time.Duration
	// OnDevice is the time between two events that the device passed before and after the call, by
	// its own clock: with NCCL and RCCL, where OnCall is set. A call of a Group has the time of the
	// whole Group. OnDevice is 0 where the time is not known: on host memory, for a launch of a graph,
	// after a failure, and with RCCL while a graph is being captured.
	OnDevice time.Duration
	// Bytes is the size of this rank's data, sent or received, whichever is more.
	Bytes int
	// Err is nil, or an *Error.
	Err error
}

// watchers are those in this process that see a Comm's calls, beside a trace, which may begin at any time.
type watchers struct {
	some     bool // onCall, or labels
	labelled bool // calls are labelled in profiles
	onCall   func(Observation)
}

// watchersOf are what o and the environment ask for.
func watchersOf(o *Options) watchers {
	labelled := environ.PProf.Get()
	return watchers{labelled || o.OnCall != nil, labelled, o.OnCall}
}

// made makes calls: one of package ccl's own by what makeOwn was given.
func made(ctx context.Context, c *Comm, calls []*call.Call) *call.Fault {
	if isOwn(calls[0].Kind) {
		return c.calling.makes(calls[0])
	}
	return faultOf(c.onHost.Run(ctx, calls))
}

// observe makes calls where somebody watches: one, or those of a group.
func (c *Comm) observe(ctx context.Context, calls []*call.Call) (f *call.Fault) {
	name := "Group"
	if len(calls) == 1 {
		name = Kind(calls[0].Kind).String()
	}
	if trace.IsEnabled() {
		defer trace.StartRegion(ctx, "ccl."+name).End()
	}
	began := time.Now()
	if c.watchers.labelled {
		pprof.Do(ctx, pprof.Labels("ccl", name, "ccl comm", c.Name()),
			func(ctx context.Context) { f = made(ctx, c, calls) })
	} else {
		f = made(ctx, c, calls)
	}
	if c.watchers.onCall == nil {
		return f
	}
	took := time.Since(began)
	for _, k := range calls {
		o := Observation{Comm: c.Name(), Took: took, Bytes: max(len(k.Dst), len(k.Src)), Call: *callOf(&k.Record)}
		o.Call.Seq, o.Call.State, o.Call.End = k.Seq, Complete, time.Duration(c.eng.Now())
		if f != nil {
			o.Call.State, o.Err = Failed, failureIn(c, f, &k.Record)
		}
		callBack(c.watchers.onCall, o)
	}
	return f
}
