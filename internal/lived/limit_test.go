package lived

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A limit ends when its time has passed, at once with its parent, and by cancel; whoever derives from it hears why.
func TestWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{time.Microsecond, time.Millisecond, 300 * time.Millisecond, time.Hour} {
			began := time.Now()
			ctx, cancel := Within(t.Context(), d)
			derived, stop := context.WithCancel(ctx)
			<-derived.Done()
			require.Equal(t, d, time.Since(began))
			require.Equal(t, context.DeadlineExceeded, ctx.Err())
			require.Equal(t, context.DeadlineExceeded, derived.Err())
			require.Equal(t, context.DeadlineExceeded, context.Cause(derived))
			stop()
			cancel()
			require.Equal(t, context.DeadlineExceeded, ctx.Err(), "it stays so")
		}
		for _, d := range []time.Duration{0, -1} {
			ctx, cancel := Within(t.Context(), d)
			require.Equal(t, context.DeadlineExceeded, ctx.Err())
			cancel()
		}
		outer, end := context.WithCancel(t.Context())
		inner, cancel := Within(outer, time.Hour)
		other, stop := Within(outer, time.Hour)
		stop()
		require.Equal(t, context.Canceled, other.Err())
		require.NoError(t, inner.Err())
		end()
		<-inner.Done()
		require.Equal(t, context.Canceled, inner.Err())
		cancel()
		late, cancel := Within(outer, time.Hour)
		require.Equal(t, context.Canceled, late.Err())
		cancel()
	})
}

// A pause, in which no timer fires, ends no limit: most of what was left is left after it.
func TestWithinOutlivesAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{20 * time.Millisecond, time.Second, time.Hour} {
			ctx, cancel := Within(t.Context(), d)
			defer cancel()
			l := ctx.(*limit)
			l.mu.Lock()
			l.timer.Stop() // as of a process that is stopped
			l.at = l.at.Add(-24 * time.Hour)
			left := l.left
			l.mu.Unlock()
			l.lap()
			require.NoError(t, ctx.Err(), "%v", d)
			l.mu.Lock()
			assert.GreaterOrEqual(t, l.left, left*3/4, "%v", d)
			l.mu.Unlock()
		}
	})
}

func TestLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, is := Left(t.Context())
		require.False(t, is)
		left := func(ctx context.Context) time.Duration {
			d, is := Left(ctx)
			require.True(t, is)
			return d
		}
		limited, cancel := Within(t.Context(), time.Minute)
		defer cancel()
		require.Equal(t, time.Minute, left(limited))
		time.Sleep(time.Second)
		require.Equal(t, 59*time.Second, left(limited))
		inner, end := Within(limited, time.Second)
		defer end()
		require.Equal(t, time.Second, left(inner))
		outer, end := Within(limited, time.Hour)
		defer end()
		require.Equal(t, 59*time.Second, left(outer))
		dated, end := context.WithTimeout(outer, time.Second)
		defer end()
		require.Equal(t, time.Second, left(dated))
		<-dated.Done()
		require.Equal(t, time.Duration(1), left(dated))
	})
}

// A loop that looks often ends in time, and one that was stopped goes on for most of it.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, d := range []time.Duration{10 * time.Millisecond, time.Second, time.Minute} {
			began, over := time.Now(), For(d)
			for !over() {
				time.Sleep(time.Millisecond)
			}
			require.Equal(t, d, time.Since(began))
			over = For(d)
			time.Sleep(time.Hour)
			began = time.Now()
			for !over() {
				time.Sleep(time.Millisecond)
			}
			require.GreaterOrEqual(t, time.Since(began), d*3/4)
		}
		require.True(t, For(0)())
	})
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		require.True(t, Sleep(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(began))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.False(t, Sleep(ctx, time.Hour))
	})
}

// behind is a context that has not heard yet that its deadline has come.
type behind struct {
	context.Context
	at time.Time
}

func (b behind) Deadline() (time.Time, bool) { return b.at, true }

func TestEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, Ended(ctx))
	require.NoError(t, Ended(behind{ctx, time.Now().Add(time.Hour)}))
	require.Equal(t, context.DeadlineExceeded, Ended(behind{ctx, time.Now()}))
	cancel()
	require.Equal(t, context.Canceled, Ended(ctx))
	require.Equal(t, context.Canceled, Ended(behind{ctx, time.Now()}))
}
