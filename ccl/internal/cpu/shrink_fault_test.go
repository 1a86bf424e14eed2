//go:build fault && linux

package cpu

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/op"
)

// A mapping is refused anywhere in a Shrink. Where a rank cannot map the memory of the Comm that was agreed on, that rank
// counts as lost: the Comm of the others fails by it, and they go on without it.
func TestShrinkThatCannotMap(t *testing.T) {
	alone := 0
	for hit := range 8 {
		t.Run(fmt.Sprintf("mapping %d", hit+1), func(t *testing.T) {
			world := twoOfAHost(t)
			for _, c := range world {
				c.rank.FailHere(call.NewFault(call.Aborted, 0, "on purpose"))
			}
			require.NoError(t, inject.Plan(fmt.Sprintf("cpu.map:%d:cut", hit+1)))
			defer inject.Plan("")
			var next [2]*Comm
			var faults [2]*call.Fault
			each(t, world[:], func(c *Comm) error {
				next[c.Rank()], faults[c.Rank()] = Shrink(t.Context(), c, plane.Options{})
				return nil
			})
			for r, c := range next {
				if c == nil {
					assert.Equal(t, call.Backend, faults[r].Code)
					assert.Equal(t, r, faults[r].Peer)
					continue
				}
				defer c.Close()
			}
			if next[0] == nil || next[1] == nil {
				alone++
			}
			each(t, world[:], func(of *Comm) error {
				c := next[of.Rank()]
				if c == nil {
					return nil
				}
				ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
				defer stop()
				k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier, Root: -1}}}
				k.Seal()
				f := c.one(ctx, k)
				if next[1-of.Rank()] != nil {
					assert.Nil(t, f)
					return nil
				}
				if f == nil || f.Code != call.RankLost || f.Peer != 1-of.Rank() {
					return fmt.Errorf("the Comm of a rank that has not got it: %v", f)
				}
				last, f := Shrink(ctx, c, plane.Options{})
				if f != nil {
					return f
				}
				defer last.Close()
				assert.Equal(t, 1, last.Size())
				return nil
			})
		})
	}
	require.NotZero(t, alone, "no mapping was that of the new Comm")
}
