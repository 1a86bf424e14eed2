package ccl

import (
	"context"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
)

// MonitoredBarrier is [Barrier] that says which ranks have not come, all of them up to 16, when a
// deadline or Options.Timeout ends it: Missing lists them, on all ranks. A Barrier names those that
// its algorithm waits for, which over a network may be one of several. All ranks must call it. Like
// any call that does not end, it then fails c on all ranks. Between hosts it goes up a binomial tree
// to the first rank and down again: twice as many messages after each other as in a Barrier.
//
//go:noinline
func MonitoredBarrier(ctx context.Context, c *Comm) error {
	// In a caller that this were inlined into, the function below would be one of the caller's, and named as the place.
	return makeOwn(ctx, c, call.MonitoredBarrier, func(k *call.Call) *call.Fault { return cpu.RollCall(ctx, c.eng, k) })
}
