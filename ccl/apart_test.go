package ccl_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// gatheringToy is one whose Close waits for the ranks of the host.
type gatheringToy struct {
	*toyEngine
	held *heldAbort
}

// heldAbort has an engine's first Abort, which is that of who has found a failure, last until the engine is closed.
type heldAbort struct {
	begun      atomic.Bool
	in, closed chan struct{}
}

func (e gatheringToy) Close() error {
	select {
	case <-e.stop:
	default:
		e.unmarked.Add(1)
	}
	if e.held != nil {
		close(e.held.closed)
	}
	return e.toyEngine.Close()
}

func (e gatheringToy) Abort() {
	if e.held != nil && e.held.begun.CompareAndSwap(false, true) {
		close(e.held.in)
		<-e.held.closed
	}
	e.toyEngine.Abort()
}

func (e gatheringToy) CloseApart() error { e.apart.Add(1); return e.toyEngine.Close() }

// gathering are Comms on toy, whose ranks are on these hosts.
func gathering(t *testing.T, toy *toyBackend, hosts ...string) []*ccl.Comm {
	toy.gathers = true
	ccl.SetBackend(t, toy.backend())
	comms, errs := newComms(len(hosts), hosts, func(int) *ccl.Options { return onToy(ccl.Options{PeerTimeout: long}) })
	require.NoError(t, errors.Join(errs...))
	return comms
}

// A rank whose neighbour closes late leaves apart, which cuts off what the library has to send, only where no other host waits
// for that.
func TestCloseApart(t *testing.T) {
	for _, tc := range []struct {
		name  string
		hosts []string
		apart int32
	}{
		{"one host", []string{"a", "a", "a"}, 3},
		{"two hosts", []string{"a", "a", "b"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			toy := &toyBackend{}
			comms := gathering(t, toy, tc.hosts...)
			var first, all sync.WaitGroup
			for _, c := range []*ccl.Comm{comms[0], comms[2]} {
				first.Go(func() { assert.NoError(t, c.Close()) })
			}
			all.Go(func() {
				if tc.apart > 0 {
					first.Wait()
				} else {
					time.Sleep(300 * time.Millisecond) // longer than a rank waits where there is one host
				}
				assert.NoError(t, comms[1].Close())
			})
			first.Wait()
			all.Wait()
			require.Equal(t, tc.apart, toy.apart.Load())
			require.EqualValues(t, 3, toy.closed.Load())
		})
	}
}

// Close after a failure, but before it has aborted the library, does not wait in there for ranks that abort.
func TestCloseAsItFails(t *testing.T) {
	toy := &toyBackend{}
	for range 2 {
		toy.held = append(toy.held, &heldAbort{in: make(chan struct{}), closed: make(chan struct{})})
	}
	comms := gathering(t, toy, "a", "a")
	var all sync.WaitGroup
	all.Go(func() { comms[0].Abort(errors.New("a test")) })
	for _, c := range comms {
		all.Go(func() {
			<-toy.held[c.Rank()].in
			assert.ErrorIs(t, c.Err(), ccl.ErrAborted)
			_ = c.Close()
		})
	}
	all.Wait()
	require.Zero(t, toy.unmarked.Load())
	require.EqualValues(t, 2, toy.closed.Load())
}
