package mirror

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Where a state does not come to the ranks that lack it, no rank waits for the rest of Restore: not
// the ranks of that transfer, and not those that have no part in it.
func TestFailedMoveEndsRestore(t *testing.T) {
	why := errors.New("no memory")
	for name, fail := range map[string]func(cancel func()) error{
		"the context ends":     func(cancel func()) error { cancel(); return nil },
		"the part has no room": func(func()) error { return why },
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var closing sync.WaitGroup
				defer closing.Wait()
				p := plan{from: []source{{rank: 0, owner: 0}, {rank: 2, held: true, owner: 1}, {rank: 2, owner: 2}}}
				err := move(ctx, c, p, &closing, func(source) ([]byte, error) {
					if c.Rank() == 1 {
						return make([]byte, 8), fail(cancel)
					}
					return make([]byte, 8), nil
				})
				if c.Rank() == 0 && err != nil || c.Rank() == 1 && err == nil { // 2 may have sent it already
					t.Errorf("rank %d: %v", c.Rank(), err)
				}
				if err := ccl.Barrier(t.Context(), c); !errors.Is(err, ccl.ErrAborted) {
					t.Errorf("rank %d goes on: %v", c.Rank(), err)
				}
			}, ccltest.With(ccl.Options{Log: slog.New(slog.DiscardHandler)}))
		})
	}
}
