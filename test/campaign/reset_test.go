package campaign

import (
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// resetTag is that of messages whose connection breaks.
const resetTag = 6

// breakUnder has the culprit send numbered messages to another rank, and reset their connection meanwhile, if they go by one. Each
// that is received with nil is the next, or the Comm fails on all ranks.
func (x *failure) breakUnder(mine bool) error {
	err := x.sendOn(mine)
	if errors.As(err, new(wrong)) {
		return err
	}
	if err == nil {
		err = ccl.Barrier(x.ctx, x.c)
	}
	if err == nil {
		x.c.Abort(errors.New("all has arrived"))
	}
	select {
	case <-x.c.Done():
		return x.c.Err()
	case <-x.ctx.Done():
		return x.wrongf("%v: a message ends with %v, and the Comm goes on", x.t, err)
	}
}

// sendOn is the messages of breakUnder.
func (x *failure) sendOn(mine bool) error {
	const probe = 100_000
	count, size := 20+x.rnd.IntN(60), 1+x.rnd.IntN(6000)
	fill := func(i int) []uint32 {
		b := make([]uint32, size)
		if i < 0 {
			b = make([]uint32, probe)
		}
		letter{salt: x.id + uint64(i)}.fill(b)
		return b
	}
	switch {
	case mine:
		to, before := ccl.LinkTo(x.c, x.other, resetTag), sentBy()
		if err := to.Send(ccl.BufOf(fill(-1))).Wait(x.ctx); err != nil {
			return err
		}
		time.AfterFunc(x.delay, func() {
			for s, n := range sentBy() {
				if n-before[s] > 4*probe {
					s.reset()
				}
			}
		})
		var all []ccl.Message
		for i := range count {
			all = append(all, to.Send(ccl.BufOf(fill(i))))
			time.Sleep(time.Duration(x.own.IntN(100)) * time.Microsecond)
		}
		for _, m := range all {
			if err := m.Wait(x.ctx); err != nil {
				return err
			}
		}
	case x.c.Rank() == x.other:
		for i := -1; i < count; i++ {
			want := fill(i)
			got := make([]uint32, len(want))
			if err := ccl.LinkTo(x.c, x.culprit, resetTag).Recv(ccl.BufOf(got)).Wait(x.ctx); err != nil {
				return err
			}
			if text := differ(got, want); text != "" {
				return x.wrongf("message %d of %d, whose connection is reset: %s", i, count, text)
			}
		}
	}
	return nil
}
