package ccl_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
)

// onQuietDevice is onToyDevice over a library whose calls wait for nobody, or, if still, whose streams do
// not move.
func onQuietDevice(t *testing.T, n int, hosts []string, still bool, o ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream)) {
	ccl.SetBackend(t, (&toyDevice{}).backend())
	o.Backend = "nccl"
	world(t, n, hosts, func(int) *ccl.Options { return &o }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		e := engine.Engine(&quietEngine{})
		if still {
			e = &stillEngine{}
		}
		ccl.SetEngine(c, e)
		meet(ctx) // what fails one of them calls the engines of all
		f(ctx, t, c, newToyStream())
	})
}

// stillEngine takes calls that never end.
type stillEngine struct{ quietEngine }

func (*stillEngine) Mark(uintptr) (engine.Mark, error) { return toyMark{s: &toyStream{}, at: 1}, nil }

// Where a library's call waits for nobody, as a root's may, ranks that have made different calls hear of it in Wait.
func TestDeviceMismatchOfRoots(t *testing.T) {
	// how is what a rank does once both have made their calls; its result is what it heard.
	for name, how := range map[string]func(ctx context.Context, c *ccl.Comm, w ccl.Work) error{
		"Wait": func(ctx context.Context, _ *ccl.Comm, w ccl.Work) error { return w.Wait(ctx) },
		"Test": func(ctx context.Context, _ *ccl.Comm, w ccl.Work) error {
			for {
				if done, err := w.Test(); done || ctx.Err() != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
		},
		"Close": func(ctx context.Context, c *ccl.Comm, _ ccl.Work) error {
			meet(ctx)
			return c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			onQuietDevice(t, 2, nil, false, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
				w := c.On(s).Broadcast(view(onDevice(1)), c.Rank())
				meet(ctx)
				e := wants(t, how(ctx, c, w), ccl.ErrMismatch)
				assert.Equal(t, 1-c.Rank(), e.Peer)
				assert.Contains(t, e.Error(), "Broadcast int64 x 1 root 0")
				assert.Contains(t, e.Error(), "Broadcast int64 x 1 root 1")
			})
		})
	}

	// The first has gone on before the other came: it hears of it in whatever it does next.
	for name, next := range map[string]func(ctx context.Context, c *ccl.Comm, s *toyStream) error{
		"Err": func(_ context.Context, c *ccl.Comm, _ *toyStream) error { return c.Err() },
		"next call": func(ctx context.Context, c *ccl.Comm, s *toyStream) error {
			return c.On(s).AllReduce(view(onDevice(1)), ccl.InPlace(), ccl.Sum).Wait(ctx)
		},
		"later Close": func(_ context.Context, c *ccl.Comm, _ *toyStream) error { return c.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			onQuietDevice(t, 2, nil, false, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
				call := func() error { return c.On(s).Broadcast(view(onDevice(1)), c.Rank()).Wait(ctx) }
				if c.Rank() == 0 {
					assert.NoError(t, call())
				}
				meet(ctx)
				if c.Rank() == 1 {
					wants(t, call(), ccl.ErrMismatch)
				}
				meet(ctx)
				if c.Rank() == 0 {
					wants(t, next(ctx, c, s), ccl.ErrMismatch)
				}
			})
		})
	}
}

// Calls that are the same are no mismatch, wherever their ranks are in them.
func TestDeviceNoMismatch(t *testing.T) {
	onQuietDevice(t, 3, nil, false, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		m := onDevice(1)
		for i := range 1000 {
			w := c.On(s).Broadcast(view(m), i%3)
			if i%(7+c.Rank()) == 0 {
				assert.NoError(t, w.Wait(ctx))
			}
		}
		assert.NoError(t, c.Close())
	})
}

// On several hosts too a stream that stands still makes ranks compare their calls.
func TestDeviceMismatchBetweenHosts(t *testing.T) {
	onQuietDevice(t, 2, []string{"a", "b"}, true, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		op := []ccl.Op{ccl.Sum, ccl.Max}[c.Rank()]
		e := wants(t, c.On(s).AllReduce(view(onDevice(1)), ccl.InPlace(), op).Wait(ctx), ccl.ErrMismatch)
		assert.Equal(t, 1-c.Rank(), e.Peer)
		assert.Contains(t, e.Error(), "AllReduce int64 x 1 sum")
		assert.Contains(t, e.Error(), "AllReduce int64 x 1 max")
	})
}

// And a rank of another host that does not come is named at the timeout.
func TestDeviceTimeoutBetweenHosts(t *testing.T) {
	onQuietDevice(t, 3, []string{"a", "b", "a"}, true, ccl.Options{Timeout: 2 * time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		if c.Rank() == 1 {
			<-c.Done()
			return
		}
		e := wants(t, c.On(s).AllReduce(view(onDevice(1)), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrTimeout)
		assert.Equal(t, 1, e.Peer)
	})
}
