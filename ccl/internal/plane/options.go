package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/algo"
)

// Options are those of ccl.Options that the engine looks at.
type Options struct {
	Timeout     time.Duration // 0: none
	PeerTimeout time.Duration // 0: none
	Strict      bool
	Unchecked   bool
	RankOrder   bool
	Table       algo.Table       // of choices
	OnSleep     func(*call.Call) // called by a call that has waited for long, on its goroutine, once

	// OnFail is called once with what the Comm fails with, and with later for each loss that does not fail it, since something has
	// or will. It must not wait.
	OnFail func(f *call.Fault, later bool)

	// What reports need and where they go. All of them may be nil. Busy and Caller are called by the monitor.
	Host      string                           // this host's name
	StallWarn time.Duration                    // after which a call that waits is reported; 0: never
	Busy      func() bool                      // a call is under way
	Caller    func() string                    // where the last call that slept was made
	OnLate    func(status.Late)                // a call has waited for StallWarn
	OnCircle  func([]status.Wait)              // ranks wait for each other
	OnPicture func(call.Code, []status.Status) // where all ranks stood when a Comm failed with that code
}

// agreed are those that all ranks have the same.
func (o *Options) agreed() group.Agreed {
	return group.Agreed{Timeout: o.Timeout, PeerTimeout: o.PeerTimeout, Strict: o.Strict, Unchecked: o.Unchecked, RankOrder: o.RankOrder, Table: o.Table}
}

// Hooks are the others: whom a rank tells of what, and what it asks for reports. Options has what each is.
type Hooks struct {
	OnFail    func(f *call.Fault, later bool)
	OnSleep   func(*call.Call)
	Host      string
	StallWarn time.Duration
	Busy      func() bool
	Caller    func() string
	OnLate    func(status.Late)
	OnCircle  func([]status.Wait)
	OnPicture func(call.Code, []status.Status)
}

// hooks are those.
func (o *Options) hooks() Hooks {
	return Hooks{OnFail: o.OnFail, OnSleep: o.OnSleep, Host: o.Host, StallWarn: o.StallWarn, Busy: o.Busy, Caller: o.Caller, OnLate: o.OnLate,
		OnCircle: o.OnCircle, OnPicture: o.OnPicture}
}
