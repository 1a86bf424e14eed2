package xpu

import (
	"context"
	"fmt"
	"sync"

	"github.com/goccl/goccl/internal/lent"
	"github.com/goccl/goccl/internal/sycl"
)

// Queue is a first-in first-out queue of work on a device: an in-order sycl::queue. It is a ccl.Stream.
type Queue struct{ lent *lent.Resource }

// NewQueue makes a queue, whose events tell times.
func (d Device) NewQueue() (*Queue, error) {
	if _, err := At(d.n); err != nil {
		return nil, err
	}
	q, err := sycl.NewQueue(d.n, true)
	if err != nil {
		return nil, fmt.Errorf("xpu: device %d: %w", d.n, err)
	}
	return &Queue{d.lend("queue", uintptr(q), func(h uintptr) error { return sycl.Queue(h).Close() })}, nil
}

// QueueOf is a queue that other code has made on d, by its sycl::queue *. It must be in order, and
// of the platform's default context, as those that SYCL makes of a device alone. Closing it leaves
// the queue itself alone. What fails in it late is told to its own handler; a queue without one has
// SYCL end the process.
func (d Device) QueueOf(handle uintptr) (*Queue, error) {
	if _, err := At(d.n); err != nil {
		return nil, err
	}
	if handle == 0 {
		return nil, fmt.Errorf("xpu: device %d: a null sycl::queue", d.n)
	}
	return &Queue{lent.Borrowed("xpu", d.n, "queue", handle)}, nil
}

// of is q's resource, nil if there is none.
func (q *Queue) of() *lent.Resource {
	if q == nil {
		return nil
	}
	return q.lent
}

// use is the queue, for a call.
func (q *Queue) use() (sycl.Queue, error) {
	h, err := q.of().Use()
	return sycl.Queue(h), err
}

// check is err with the device.
func (q *Queue) check(err error) error { return on(q.Device(), err) }

// Handle is the sycl::queue *; ok is false once q is closed.
func (q *Queue) Handle() (h uintptr, ok bool) { return q.of().Handle() }

// Device is the number of the device.
func (q *Queue) Device() int { return q.of().Device() }

// Platform is "xpu".
func (q *Queue) Platform() string { return "xpu" }

// Synchronize waits for all that was issued to q. It holds a thread of the system and cannot be ended; see Wait.
func (q *Queue) Synchronize() error {
	h, err := q.use()
	if err != nil {
		return err
	}
	return q.check(h.Wait())
}

// Query reports whether all that was issued to q is done.
func (q *Queue) Query() (done bool, err error) {
	h, err := q.use()
	if err != nil {
		return false, err
	}
	done, err = h.Empty()
	return done, q.check(err)
}

// Wait is Synchronize that ends with ctx as well; the work goes on then. It asks again and again, at longer and longer
// intervals of at most 200 microseconds.
func (q *Queue) Wait(ctx context.Context) error { return lent.Poll(ctx, q.Query) }

// WaitEvent has what is issued to q from now on wait for what e has recorded.
func (q *Queue) WaitEvent(e *Event) error {
	h, event, err := lent.UseBoth(q.of(), e.of())
	if err != nil {
		return err
	}
	return q.check(sycl.Queue(h).After(sycl.Event(event)))
}

// Close gives the queue back; what was issued to it still runs.
func (q *Queue) Close() error { return q.of().Close() }

// own are the queues for copies that wait, one a device, made on first use.
var own = struct {
	sync.Mutex
	queues map[int]sycl.Queue
}{queues: map[int]sycl.Queue{}}

func ownQueue(dev int) (sycl.Queue, error) {
	own.Lock()
	defer own.Unlock()
	if q, ok := own.queues[dev]; ok {
		return q, nil
	}
	q, err := sycl.NewQueue(dev, false)
	if err != nil {
		return 0, err
	}
	own.queues[dev] = q
	return q, nil
}
