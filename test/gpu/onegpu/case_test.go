//go:build (nccl || rccl) && cgo && linux

package onegpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// cases are what a rank can do. Each returns what it has seen, or why that is wrong.
var cases = map[string]func(r *rank, ctx context.Context) (string, error){
	"values":   (*rank).values,
	"graph":    (*rank).graph,
	"register": (*rank).register,
	"operator": func(r *rank, ctx context.Context) (string, error) { return r.differ(ctx, byOperator) },
	"count":    func(r *rank, ctx context.Context) (string, error) { return r.differ(ctx, byCount) },
	"kind":     func(r *rank, ctx context.Context) (string, error) { return r.differ(ctx, byKind) },
	"killed":   (*rank).killed,
	"stopped":  (*rank).stopped,
	"abort":    (*rank).abort,
}

// rank is one of two on device 0.
type rank struct {
	c  *ccl.Comm
	d  gpu.Device
	s  *gpu.Stream
	q  ccl.Queue
	me int
}

func join(ctx context.Context) (*rank, error) {
	backend, device := os.Getenv(backendVariable), 0
	o := ccl.Options{Backend: backend, Device: &device, PeerTimeout: 3 * time.Second, Timeout: time.Minute}
	if os.Getenv(checkVariable) == "strict" {
		o.Check = ccl.CheckStrict
	}
	c, err := ccl.Join(ctx, &o)
	if err != nil {
		return nil, err
	}
	d, err := runtimes[backend].Device(device)
	if err != nil {
		return nil, err
	}
	s, err := d.NewStream()
	if err != nil {
		return nil, err
	}
	r := &rank{c: c, d: d, s: s, q: c.On(s), me: c.Rank()}
	if c.Size() != 2 {
		return nil, fmt.Errorf("%d ranks, not 2", c.Size())
	}
	return r, r.warm(ctx)
}

// warm makes a first call, for which the library connects.
func (r *rank) warm(ctx context.Context) error {
	x, err := r.mem(1)
	if err != nil {
		return err
	}
	return r.expect(ctx, r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum), x, 2)
}

func (r *rank) mem(v ...int32) (*gpu.Mem[int32], error) {
	x, err := gpu.Alloc[int32](r.d, len(v))
	if err != nil {
		return nil, err
	}
	return x, x.Put(v)
}

// expect waits for w and compares what x holds then, which it frees.
func (r *rank) expect(ctx context.Context, w ccl.Work, x *gpu.Mem[int32], want ...int32) error {
	if err := w.Wait(ctx); err != nil {
		return err
	}
	got := make([]int32, x.Len())
	if err := x.Get(got); err != nil {
		return err
	}
	for i, v := range want {
		if got[i] != v {
			return fmt.Errorf("element %d of %d is %d, not %d", i, len(want), got[i], v)
		}
	}
	return x.Free()
}

// leave ends a rank whose calls have all succeeded.
func (r *rank) leave() error {
	return errors.Join(r.c.Close(), r.s.Synchronize(), r.s.Close())
}

// failed is what a rank says of err, the failure of its Comm, once everything is given back in bounded time all the same.
func (r *rank) failed(ctx context.Context, err error) (string, error) {
	var e *ccl.Error
	if !errors.As(err, &e) {
		return "", fmt.Errorf("an *Error was expected, not %w", err)
	}
	r.c.Close()
	if err := r.s.Wait(ctx); err != nil {
		return "", fmt.Errorf("the stream is not released: %w", err)
	}
	return fmt.Sprintf("%v peer %d", e.Code, e.Peer), r.s.Close()
}

// both waits until the other rank has come here too, over the control plane.
func (r *rank) both(ctx context.Context) error { return ccl.Barrier(ctx, r.c) }

// kernel issues an all-reduce that the other rank does not make, so that the library's kernel runs on and on. The call
// may have failed by now where the other rank is lost meanwhile: whoever waits for it hears that.
func (r *rank) kernel(ctx context.Context) (ccl.Work, error) {
	x, err := r.mem(1) // the library has it until the Comm is closed
	if err != nil {
		return ccl.Work{}, err
	}
	w := r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(time.Millisecond) {
		switch done, err := w.Test(); {
		case err != nil:
			return w, nil
		case done:
			return w, errors.New("a call that one rank makes alone has ended well")
		}
	}
	return w, nil
}

// graph captures a sum and launches it three times.
func (r *rank) graph(ctx context.Context) (string, error) {
	x, err := r.mem(1, 5)
	if err != nil {
		return "", err
	}
	if err := errors.Join(r.both(ctx), r.s.BeginCapture()); err != nil {
		return "", err
	}
	r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
	g, err := r.s.EndCapture()
	if err != nil {
		return "", err
	}
	for range 3 {
		if err := g.Launch(r.s); err != nil {
			return "", err
		}
	}
	// A call that is issued directly comes after the replays.
	w := r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
	return "right", errors.Join(r.expect(ctx, w, x, 16, 80), g.Close(), r.leave())
}

// register makes calls on memory that is registered on one rank, then on both, then on none.
func (r *rank) register(ctx context.Context) (string, error) {
	const n = 1 << 18
	v, want := make([]int32, n), make([]int32, n)
	for i := range v {
		v[i], want[i] = int32(i*(r.me+1)), int32(i*3)
	}
	for turn := range 3 {
		x, err := r.mem(v...)
		if err != nil {
			return "", err
		}
		release := func() error { return nil }
		if turn == 1 || turn == 0 && r.me == 1 {
			if release, err = r.c.Register(ctx, ccl.BufOfMemory(x)); err != nil {
				return "", err
			}
		}
		w := r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
		if err := w.Wait(ctx); err != nil {
			return "", err
		}
		if err := errors.Join(release(), r.expect(ctx, w, x, want...)); err != nil {
			return "", fmt.Errorf("turn %d: %w", turn, err)
		}
	}
	return "right", r.leave()
}

// call is what a rank makes of memory of four elements.
type call func(q ccl.Queue, x ccl.Buf) ccl.Work

var (
	sum        call = func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.AllReduce(x, ccl.InPlace(), ccl.Sum) }
	byOperator      = [2]call{sum, func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.AllReduce(x, ccl.InPlace(), ccl.Max) }}
	byCount         = [2]call{sum, func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.AllReduce(x.From(0, 3), ccl.InPlace(), ccl.Sum) }}
	byKind          = [2]call{sum, func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.Broadcast(x, 0) }}
)

// differ makes calls that differ between the ranks.
func (r *rank) differ(ctx context.Context, calls [2]call) (string, error) {
	x, err := r.mem(1, 2, 3, 4)
	if err != nil {
		return "", err
	}
	return r.failed(ctx, calls[r.me](r.q, ccl.BufOfMemory(x)).Wait(ctx))
}

// killed: rank 1 is killed while the kernel of rank 0 waits for it.
func (r *rank) killed(ctx context.Context) (string, error) {
	if r.me == 1 {
		time.Sleep(time.Second)
		err := syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Second) // another thread may take the signal
		return "", err
	}
	w, err := r.kernel(ctx)
	if err != nil {
		return "", err
	}
	return r.failed(ctx, w.Wait(ctx))
}

// stopped: rank 1 is stopped while the kernel of rank 0 waits for it, and goes on when rank 0 has given it up.
func (r *rank) stopped(ctx context.Context) (string, error) {
	pids := make([]int32, 2)
	if err := ccl.AllGather(ctx, r.c, pids, []int32{int32(os.Getpid())}); err != nil {
		return "", err
	}
	if r.me == 1 {
		time.Sleep(time.Second)
		if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
			return "", err
		}
		time.Sleep(time.Second) // another thread may take the signal; this lasts until SIGCONT
		return r.failed(ctx, r.warm(ctx))
	}
	w, err := r.kernel(ctx)
	if err != nil {
		return "", err
	}
	said, err := r.failed(ctx, w.Wait(ctx))
	return said, errors.Join(err, syscall.Kill(int(pids[1]), syscall.SIGCONT))
}

// abort: rank 0 aborts while its kernel waits for rank 1.
func (r *rank) abort(ctx context.Context) (string, error) {
	if r.me == 1 {
		select {
		case <-r.c.Done():
			return r.failed(ctx, r.c.Err())
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	w, err := r.kernel(ctx)
	if err != nil {
		return "", err
	}
	r.c.Abort(errors.New("enough"))
	return r.failed(ctx, w.Wait(ctx))
}
