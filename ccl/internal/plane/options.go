package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
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
	Table       algo.Table        // of choices
	OnFail      func(*call.Fault) // called once, when the Comm fails
	OnSleep     func(*call.Call)  // called by a call that has waited for long, on its goroutine, once

	// What reports need and where they go. All of them may be nil. Busy and Caller are called by the monitor.
	Host      string                           // this host's name
	StallWarn time.Duration                    // after which a call that waits is reported; 0: never
	Busy      func() bool                      // a call is under way
	Caller    func() string                    // where the last call that slept was made
	OnLate    func(status.Late)                // a call has waited for StallWarn
	OnCircle  func([]status.Wait)              // ranks wait for each other
	OnPicture func(call.Code, []status.Status) // where all ranks stood when a Comm failed with that code
}
