package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/logline"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
)

// A new process is slow at first: its memory is not there yet, its threads move about, clocks rise.
// So calls are made for a time before the first row, window by window, until settledWindows in turn
// are as quick as the quickest so far.
const (
	settleWindow   = 2 * time.Millisecond
	settleLeast    = 40 * time.Millisecond
	settleMost     = 300 * time.Millisecond
	settledWindows = 4
	settleLargest  = 1 << 10 // bytes of a call
)

// settle makes calls of the first collective, of the first size if that is small, on each backend
// until they take as long as they will. With -w 0 no call comes before the first that is measured.
func settle[T ccl.Number](s *session) error {
	c := coll.Named[T](s.o.Collectives[0])
	if s.supports(c.Kind, ccl.TypeOf[T](), s.o.Ops[0]) != nil {
		return nil
	}
	e := extentOf(s, c, slices.Min(append(s.o.Sizes(ccl.TypeOf[T]().Size()), settleLargest)))
	return limited(s, title(c, s.o.Ops[0]), e.bytes, func(ctx context.Context) error {
		for _, l := range s.lanes {
			t := newTest(s, ctx, l, c, s.o.Ops[0], max(s.o.Root, 0), e.count, e.room, false)
			if err := errors.Join(t.up(), t.settle()); err != nil {
				return err
			}
		}
		return nil
	})
}

// settle makes calls until they have settled. All ranks make as many.
func (t *test[T]) settle() error {
	var per []float64 // call, in each window
	took := make([]int64, 1)
	spent := time.Duration(0)
	for n := 1; spent < settleMost; {
		if err := ccl.Barrier(t.ctx, t.s.world); err != nil {
			return err
		}
		start := time.Now()
		for range n {
			if err := t.call(t.nextBuffers()); err != nil {
				return err
			}
		}
		took[0] = time.Since(start).Nanoseconds()
		if err := ccl.AllReduce(t.ctx, t.s.world, took, took, ccl.Max); err != nil {
			return err
		}
		spent += time.Duration(took[0]) + time.Microsecond // calls of no data may take none
		each := max(took[0]/int64(n), 1)
		per = append(per, float64(each))
		if spent >= settleLeast && len(per) > settledWindows &&
			slices.Max(per[len(per)-settledWindows:]) <= 1.1*slices.Min(per) {
			return nil
		}
		n = int(min(max(settleWindow.Nanoseconds()/each, 1), 8*int64(n)))
	}
	return nil
}

// limited runs body, whose calls end when the time of -T is over. The error says what it was.
func limited(s *session, title string, bytes int, body func(ctx context.Context) error) error {
	ctx, cancel := s.ctx, context.CancelFunc(func() {})
	if s.o.Timeout > 0 {
		s.hush()
		ctx, cancel = context.WithTimeout(s.ctx, s.o.Timeout)
	}
	defer cancel()
	err := body(ctx)
	switch {
	case err == nil:
		s.hush()
		return nil
	// The limit may have passed here or, a moment before, on another rank, which has then aborted the call.
	case s.ctx.Err() == nil && (ctx.Err() != nil || errors.Is(err, ccl.ErrAborted) && endsWithin(ctx, s.o.Timeout/10) ||
		s.o.Timeout > 0 && errors.Is(err, ccl.ErrTimeout)):
		return fmt.Errorf("%s, %s bytes: longer than -T %v: %w", title, option.FormatSize(bytes), s.o.Timeout, err)
	}
	return fmt.Errorf("%s, %s bytes: %w", title, option.FormatSize(bytes), err)
}

// hush leaves to limited what there is to say of calls that end by -T: this rank's next ends later
// than half of that from now, and so do those of the others, which have come as far.
func (s *session) hush() {
	if h, ours := slog.Default().Handler().(*logline.Handler); ours && s.o.Timeout > 0 {
		h.Until(time.Now().Add(s.o.Timeout / 2))
	}
}

// endsWithin waits for the end of ctx, and reports whether it came in that time.
func endsWithin(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return true
	case <-time.After(d):
		return false
	}
}

// busyShare is the part of the time that threads wait for a processor in which a machine is called
// busy, in thousandths.
const busyShare = 100

// settle warms the processes of the job, and says above the table on which machine threads wait for
// processors meanwhile.
func (s *session) settle() error {
	ran, waited := machine.Waited("/")
	if s.o.Warmup == 0 {
		return nil
	}
	if err := typed[s.o.Types[0]].settle(s); err != nil {
		return err
	}
	nowRan, nowWaited := machine.Waited("/")
	ran, waited = max(nowRan-ran, 0), max(nowWaited-waited, 0)
	share := []int64{int64(1000*waited/max(ran+waited, 1))<<32 | int64(s.world.Rank())}
	if err := ccl.AllReduce(s.ctx, s.world, share, share, ccl.Max); err != nil {
		return err
	}
	s.out.busy(int(share[0]>>32), int(share[0]&0xffffffff))
	return nil
}

// busy says that the process of a rank waits for a processor so many thousandths of the time.
func (o *output) busy(share, rank int) {
	if o == nil || share < busyShare {
		return
	}
	o.file.Busy = fmt.Sprintf("busy: the process of rank %d on %s waits for a processor %d %% of the time, so times are longer, and vary",
		rank, cmp.Or(o.hostOf(rank), "this machine"), share/10)
	o.comment("%s", o.file.Busy)
}
