package cpu

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// steps is a context that is canceled when it is asked for the at-th time whether it has ended.
type steps struct {
	context.Context
	at     int
	cancel context.CancelFunc
}

func (s *steps) Done() <-chan struct{} {
	if s.at--; s.at == 0 {
		s.cancel()
	}
	return s.Context.Done()
}

func mailsOf(t *testing.T, c [2]*Comm) (all [2]*mail.Account) {
	t.Helper()
	for r := range c {
		var err error
		all[r], err = OpenMail(c[r])
		require.NoError(t, err)
	}
	return all
}

// What a Subset that a rank has given up has made is given back, whichever rank it was and wherever it stood, with c open: also where
// both have the Comm, as it was given up too late.
func TestCanceledSubsetsLeaveNothing(t *testing.T) {
	c := twoOfAHost(t)
	h := c[0].rank.Site.Here.Host
	c[0].rank.Site.Job.StartMonitor()
	mails := mailsOf(t, c)
	times := 1000
	if testing.Short() {
		times = 300
	}
	var space, memory, failed int
	for i := range times {
		if i == 50 { // what is taken once is there
			space, memory = unusedBy(h), takenBy(t, h)
		}
		quits, at := i%2, i/2%12
		if i < 50 { // nobody gives up
			at = 0
		}
		var made [2]bool
		var back atomic.Bool // the other rank has returned
		each(t, c[:], func(c *Comm) error {
			r := c.Rank()
			var child *Comm
			var f *call.Fault
			for first := true; first || r == quits && f != nil && !back.Load(); first = false { // the other may have come later
				ctx, cancel := context.WithCancel(t.Context())
				if r == quits {
					if !first { // and may have left by now
						time.AfterFunc(5*time.Millisecond, cancel)
					}
					child, f = Subset(&steps{ctx, at, cancel}, c, mails[r], []int{1, 0}, 7, plane.Options{})
				} else {
					child, f = Subset(ctx, c, mails[r], []int{1, 0}, 7, plane.Options{})
					back.Store(true)
				}
				cancel()
			}
			if made[r] = f == nil; made[r] {
				child.Close()
			} else {
				assert.Equal(t, call.Canceled, f.Code, "%v", f)
			}
			return nil
		})
		require.Equal(t, made[0], made[1], "rank %d gives up at step %d", quits, at)
		if !made[0] {
			failed++
		}
	}
	require.Greater(t, failed, times/10)
	require.Eventually(t, func() bool { return unusedBy(h) >= space && takenBy(t, h) <= memory }, 20*time.Second, 5*time.Millisecond,
		"of %d and %d bytes", space, memory)
}
