package lived

import (
	"context"
	"sync"
	"time"

	"github.com/goccl/goccl/internal/simhost"
)

// How a limit is counted: in steps of an eighth of what is left, a second at most. A pause counts
// as the step that it is in and LapMax more, or that step once more, if it is shorter: so it takes
// no more than a quarter of what is left. Those that come after the pause have the rest to say what
// they have to say.
const (
	stepsLeft = 8
	stepMin   = 2 * time.Millisecond
	stepMax   = time.Second
)

// Within returns a context that ends with ctx, and with context.DeadlineExceeded once this process
// has lived for d since, as exactly as a timer may. Its Deadline is that of ctx: nobody knows when
// it will have. See Left.
func Within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	l := &limit{Context: ctx, done: make(chan struct{}), left: d, at: time.Now()}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil || d <= 0 {
		if err == nil {
			err = context.DeadlineExceeded
		}
		l.end(err)
		return l, noEnd
	}
	l.step = stepOf(d)
	l.timer = time.AfterFunc(l.step, l.lap)
	if ctx.Done() != nil {
		l.apart = context.AfterFunc(ctx, func() { l.finish(ctx.Err()) })
	}
	return l, func() { l.finish(context.Canceled) }
}

func noEnd() {}

// limit is a context of Within.
type limit struct {
	context.Context // whose values it has
	done            chan struct{}

	mu    sync.Mutex // guards what follows
	err   error
	left  time.Duration // to be lived through, as of at
	at    time.Time
	step  time.Duration // until the next lap
	timer *time.Timer
	apart func() bool // parts from ctx; nil: that never ends
}

func stepOf(left time.Duration) time.Duration {
	return min(max(left/stepsLeft, stepMin), stepMax, left)
}

// lap counts what has passed since the last.
func (l *limit) lap() {
	simhost.Live(simhost.Of(l.Context))
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil {
		return
	}
	now := time.Now()
	l.left -= min(max(now.Sub(l.at), 0), l.step+min(l.step, LapMax))
	if l.at = now; l.left <= 0 {
		l.end(context.DeadlineExceeded)
		return
	}
	l.step = stepOf(l.left)
	l.timer.Reset(l.step)
}

func (l *limit) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.end(err)
	}
}

// end ends it. l.mu is held.
func (l *limit) end(err error) {
	l.err = err
	if l.timer != nil {
		l.timer.Stop()
	}
	if l.apart != nil {
		l.apart()
	}
	close(l.done)
}

// Done is closed when it has ended.
func (l *limit) Done() <-chan struct{} { return l.done }

// Err is why it has ended.
func (l *limit) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// leftOf is the key of what is left of the limits of a context.
type leftOf struct{}

// Value has what is left, for Left.
func (l *limit) Value(key any) any {
	if key != (leftOf{}) {
		return l.Context.Value(key)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	left := max(l.left-min(max(time.Since(l.at), 0), l.step), 0)
	if outer, ok := l.Context.Value(key).(time.Duration); ok {
		left = min(left, outer)
	}
	return left
}

// Left is how long ctx has yet, by its deadline and by Within, if it has a limit: at least a nanosecond.
func Left(ctx context.Context) (d time.Duration, limited bool) {
	d, limited = ctx.Value(leftOf{}).(time.Duration)
	if at, ok := ctx.Deadline(); ok {
		if by := time.Until(at); !limited || by < d {
			d, limited = by, true
		}
	}
	return max(d, 1), limited
}

// Ended is ctx.Err, or what it is about to be: a connection looks at the clock itself, and so hears of
// ctx's deadline a moment before ctx does.
func Ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// For returns a function for a loop that looks again and again: it reports whether this process has
// lived for d. Of what passes between two of its calls it counts a quarter of d, and LapMax, at
// most.
func For(d time.Duration) (over func() bool) {
	left, at, most := d, time.Now(), min(d/4, LapMax)
	return func() bool {
		now := time.Now()
		left -= min(max(now.Sub(at), 0), most)
		at = now
		return left <= 0
	}
}

// Sleep waits for d, and reports whether ctx has not ended meanwhile.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		simhost.Live(simhost.Of(ctx))
		return true
	}
}
