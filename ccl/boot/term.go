package boot

import (
	"context"
	"time"

	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/simhost"
)

// term is a time that comes, counted in what this process lives through. The zero term never does.
type term struct {
	of   simhost.Host // whose process lives through it
	ctx  context.Context
	stop context.CancelFunc
}

// set has it come after d.
func (t *term) set(d time.Duration) {
	t.clear()
	t.ctx, t.stop = lived.Within(simhost.With(context.Background(), t.of), d)
}

// after has it come after so many milliseconds; 0: never.
func (t *term) after(milliseconds uint32) {
	if t.clear(); milliseconds > 0 {
		t.set(time.Duration(milliseconds) * time.Millisecond)
	}
}

// until is d, or less where it comes before: a rank outstays its time by grace.
func (t *term) until(d time.Duration) time.Duration {
	if left, comes := t.left(); comes {
		return min(d, left+grace)
	}
	return d
}

// clear has it never come.
func (t *term) clear() {
	if t.stop != nil {
		t.stop()
	}
	*t = term{of: t.of}
}

// over is closed when it has come, nil if it never does.
func (t *term) over() <-chan struct{} {
	if t.ctx == nil {
		return nil
	}
	return t.ctx.Done()
}

// left is how long it is until then, if it comes.
func (t *term) left() (d time.Duration, comes bool) {
	if t.ctx == nil {
		return 0, false
	}
	return lived.Left(t.ctx)
}
