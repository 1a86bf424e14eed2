package ccl_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/lobby"
)

// leaving is a newcomer's store: its context ends once it has answered a call, and waits for its seat.
type leaving struct {
	boot.Store
	lobby.Watcher
	leave context.CancelFunc
}

func (l leaving) Get(ctx context.Context, key string) ([]byte, error) {
	if strings.HasPrefix(key, "goccl/seats/") {
		_, err := l.Store.Get(ctx, key)
		l.leave()
		return nil, err
	}
	return l.Store.Get(ctx, key)
}

// A newcomer that gives up the seat that it was given holds nobody up: the job goes on at once, and not after the
// meeting's time, here two hours. So it is where all that is heard of it is that its connection has ended, as where it
// was killed.
func TestNewcomerGivesItsSeatUp(t *testing.T) {
	for _, killed := range []bool{false, true} {
		j := newGrowing(t)
		store, err := boot.DialHall(j.hall.Addr(), nil)
		require.NoError(t, err)
		watcher := store.(lobby.Watcher)
		ended := make(chan struct{})
		newcomer := func() {
			defer close(ended)
			ctx, leave := context.WithCancel(j.ctx)
			defer leave()
			if !killed {
				o := j.options(ccl.Options{})
				o.Store = leaving{store, watcher, leave}
				_, err := ccl.Join(ctx, o)
				assert.ErrorIs(t, err, ccl.ErrCanceled)
				return
			}
			end, err := watcher.SetWhenLost(ctx, lobby.Gone("line"))
			assert.NoError(t, err)
			for g, mine := int64(0), -1; mine < 0 && err == nil; { // again, where it did not answer within the lead's second
				if g, err = lobby.Next(ctx, store, g, true); err == nil {
					_, mine, err = lobby.Answer(ctx, store, g, lobby.Guest{Line: "line"}, long)
				}
			}
			assert.NoError(t, err)
			end(true)
		}
		j.startWith(2, nil, func(int) *ccl.Options { return j.options(ccl.Options{PeerTimeout: time.Hour}) }, func(r int, c *ccl.Comm) {
			defer c.Close()
			if r == 0 {
				j.all.Go(newcomer)
				j.waits(1)
			}
			for over := []bool{false}; !over[0] && !t.Failed(); {
				same, err := ccl.GrowAll(j.ctx, c, 9)
				assert.NoError(t, err)
				assert.Same(t, c, same)
				select {
				case <-ended:
					over[0] = true
				default:
				}
				over[0], err = ccl.BroadcastValue(j.ctx, c, over[0], 0)
				assert.NoError(t, err)
			}
			works(j.ctx, t, c)
		})
		j.all.Wait()
		require.False(t, t.Failed())
	}
}
