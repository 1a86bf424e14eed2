package ccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// A nil Comm and Comm{} refuse every call, and say why.
func TestNoComm(t *testing.T) {
	x := []int{1}
	for name, c := range map[string]*ccl.Comm{"nil": nil, "zero": {}} {
		ctx := t.Context()
		_, split := c.Split(ctx, 0, 0)
		_, shrink := c.Shrink(ctx)
		_, slice := ccl.MakeSlice[int](ctx, c, 1)
		for op, err := range map[string]error{
			"Barrier": ccl.Barrier(ctx, c), "AllReduce": ccl.AllReduce(ctx, c, x, x, ccl.Sum), "Send": ccl.Send(ctx, c, x, 0),
			"Reduce": c.Supports(ccl.KindReduce, ccl.TypeInt8, ccl.Sum), "Split": split, "Shrink": shrink, "MakeSlice": slice, "Comm": c.Err(),
		} {
			e := wants(t, err, ccl.ErrArgument)
			assert.Equal(t, op, e.Op, name)
			assert.Contains(t, e.Error(), "the Comm is nil", name)
		}
		wants(t, c.On(nil).Barrier().Wait(ctx), ccl.ErrArgument)
		wants(t, c.On(ccl.NewHostStream()).Group(func(ccl.Queue) error { return nil }).Wait(ctx), ccl.ErrArgument)
		assert.Equal(t, -1, c.Rank(), name)
		assert.Zero(t, c.Size(), name)
		assert.Equal(t, "no Comm", c.String(), name)
		assert.Nil(t, c.Done(), name)
		assert.Equal(t, ccl.Place{Node: -1, Local: -1, Device: -1}, c.Place(), name)
		c.SetName("some")
		for _, said := range []string{c.Name(), c.Transport(), c.Backend(), c.Plan(ccl.KindReduce, ccl.TypeInt8, ccl.Sum, 1)} {
			assert.Equal(t, "no Comm", said, name)
		}
		assert.Empty(t, c.Library(), name)
		assert.Zero(t, c.Native(), name)
		for range c.Trace() {
			assert.Fail(t, "a call of no Comm", name)
		}
		c.Abort(nil)
		assert.NoError(t, c.Close(), name)
	}
}

// The zero HostStream is an empty one. A nil one takes nothing.
func TestZeroHostStream(t *testing.T) {
	var s ccl.HostStream
	_, ok := s.Handle()
	assert.True(t, ok)
	ran := false
	assert.NoError(t, s.Do(func() error { ran = true; return nil }).Wait(t.Context()))
	assert.True(t, ran)
	wants(t, s.Do(nil).Wait(t.Context()), ccl.ErrArgument)
	assert.NoError(t, s.Close())
	wants(t, s.Do(func() error { return nil }).Wait(t.Context()), ccl.ErrClosed)

	var none *ccl.HostStream
	wants(t, none.Do(func() error { return nil }).Wait(t.Context()), ccl.ErrArgument)
	_, ok = none.Handle()
	assert.False(t, ok)
	assert.NoError(t, none.Close())

	assert.Zero(t, ccl.BufOfMemory[int](nil).Len())
}

// A Group without a function, and the Queue of one that has returned, are refused, as any call that is wrong: no call
// is lost silently.
func TestGroupThatIsNone(t *testing.T) {
	for name, wrong := range map[string]func(q ccl.Queue, x []int) ccl.Work{
		"nil function": func(q ccl.Queue, x []int) ccl.Work { return q.Group(nil) },
		"nil function within": func(q ccl.Queue, x []int) ccl.Work {
			return q.Group(func(g ccl.Queue) error { g.Group(nil); return nil })
		},
		"kept queue": func(q ccl.Queue, x []int) ccl.Work {
			var kept ccl.Queue
			q.Group(func(g ccl.Queue) error { kept = g; return nil })
			return ask(kept, x)
		},
		"kept queue's group": func(q ccl.Queue, x []int) ccl.Work {
			var kept ccl.Queue
			q.Group(func(g ccl.Queue) error { kept = g; return nil })
			return kept.Group(func(g ccl.Queue) error { ask(g, x); return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			world(t, 2, nil, func(int) *ccl.Options { return &ccl.Options{Timeout: 10 * time.Second} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				x := []int{1}
				if c.Rank() == 1 {
					w := wrong(c.On(nil), x)
					wants(t, w.Wait(ctx), ccl.ErrArgument)
					assert.Equal(t, []int{1}, x)
					return
				}
				wants(t, ask(c.On(nil), x).Wait(ctx), ccl.ErrMismatch)
			})
		})
	}
}
