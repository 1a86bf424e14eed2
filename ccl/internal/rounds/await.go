package rounds

import (
	"context"
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// await returns when rank r of this host has posted round, in the call that k is.
func (c *Team) await(ctx context.Context, k *call.Call, r int, round uint32) *call.Fault {
	p, want := c.Local.Flag(r, round), uint64(round)<<32|uint64(k.Hash)
	if atomic.LoadUint64(p) == want {
		return nil
	}
	var w plane.Waiter
	for {
		for range c.Spins {
			if atomic.LoadUint64(p) == want {
				return nil
			}
		}
		v := atomic.LoadUint64(p)
		if v == want {
			return nil
		}
		if uint32(v>>32) == round || int32(uint32(v>>32)-round) > 0 {
			return c.Stop(c.Differs(r, k.Place))
		}
		if f := c.Pause(ctx, &w, c.LocalRank(r)); f != nil {
			return f
		}
	}
}
