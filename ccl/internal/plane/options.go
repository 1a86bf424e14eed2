package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// Options are those of ccl.Options that the engine looks at.
type Options struct {
	Agreed group.Agreed // those that all ranks have the same
	Hooks
}

// Hooks are functions of package ccl that a rank calls: to tell of events, and to ask for what reports need.
type Hooks struct {
	OnSleep func(*call.Call) // called by a call that has waited for long, on its goroutine, once

	// OnFail is called once with what the Comm fails with, and with later for each loss that does not
	// fail it, since something has or will. It must not wait.
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
