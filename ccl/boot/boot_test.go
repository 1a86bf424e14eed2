package boot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/lived"
)

func TestAlone(t *testing.T) {
	b := alone(secretOf(sesame), "h")
	require.Equal(t, 0, b.Rank())
	require.Equal(t, 1, b.Size())
	require.Equal(t, "h", b.HostID())
	swap(t, []*Boot{b})
	secret := b.Secret()
	secret[0] = 'x' // a copy
	require.Equal(t, []byte(sesame), b.Secret())
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	_, err := b.AllGather(t.Context(), nil)
	require.EqualError(t, err, "boot: rank 0 of 1: used after Close")
}

func TestCloseDuringAllGather(t *testing.T) {
	noLeaks(t)
	root := freeRoot(t)
	for _, boots := range [][]*Boot{
		joined(t, 2, func(r int) (*Boot, error) { return TCP(within(t, long), root, r, 2, nil) }),
		Local(2),
	} {
		time.AfterFunc(20*time.Millisecond, func() { boots[1].Close() })
		ctx := within(t, long)
		_, err := boots[1].AllGather(ctx, nil)
		wantError(t, err, Closed, 1, -1)
		require.NoError(t, ctx.Err(), "it has waited for its context")
	}
}

func TestLimited(t *testing.T) {
	ctx, cancel := limited(context.Background(), time.Hour)
	defer cancel()
	d, ok := lived.Left(ctx)
	require.True(t, ok)
	require.InDelta(t, time.Hour, d, float64(time.Minute))
	again, cancel := limited(ctx, time.Second)
	defer cancel()
	same, _ := lived.Left(again)
	require.InDelta(t, d, same, float64(time.Minute))
	dated := within(t, time.Hour)
	again, cancel = limited(dated, time.Second)
	defer cancel()
	at, _ := dated.Deadline()
	until, _ := again.Deadline()
	require.Equal(t, at, until)

	require.Equal(t, uint32(0), left(context.Background()))
	require.InDelta(t, 3600_000, left(ctx), 60_000)
	require.Equal(t, uint32(1), left(within(t, -time.Second)))
}

func TestEnded(t *testing.T) {
	require.ErrorIs(t, ended(context.Canceled, "x"), Canceled)
	e := ended(context.DeadlineExceeded, "100% over")
	require.ErrorIs(t, e, Timeout)
	require.Equal(t, "100% over", e.Text)
	require.True(t, errors.Is(e, context.DeadlineExceeded))
}

// Whoever refuses, all hear it, and why; and nobody waits for it to end.
func TestRefuse(t *testing.T) {
	for name, meet := range map[string]func(t *testing.T) []*Boot{
		"processes": func(t *testing.T) []*Boot {
			root := freeRoot(t)
			return joined(t, 3, func(r int) (*Boot, error) {
				return TCP(within(t, long), root, r, 3, &TCPOptions{HostID: []string{"a", "b", "b"}[r]})
			})
		},
		"goroutines": func(*testing.T) []*Boot { return Local(3) },
	} {
		for refuser := range 3 {
			t.Run(fmt.Sprint(name, refuser), func(t *testing.T) {
				noLeaks(t)
				boots := meet(t)
				var wg sync.WaitGroup
				for r, b := range boots {
					wg.Go(func() {
						if r == refuser {
							b.Refuse(errors.New("no taste for it"))
							return
						}
						_, err := b.AllGather(within(t, long), nil)
						e := wantError(t, err, Argument, r, refuser)
						require.Contains(t, e.Text, "gave up: no taste for it")
					})
				}
				wg.Wait()
				_, err := boots[refuser].AllGather(t.Context(), nil)
				wantError(t, err, Argument, refuser, refuser)
				closeAll(boots)
			})
		}
	}
}
