//go:build linux && !race

package promises

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// inChild are the uses of a Comm that a forked child tries, all of which must give ErrClosed.
var inChild = []struct {
	name string
	use  func(ctx context.Context, c *ccl.Comm, x []float32, issued ccl.Work) error
}{
	{"AllReduce", func(ctx context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error {
		return ccl.AllReduce(ctx, c, x, x, ccl.Sum)
	}},
	{"Send", func(ctx context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error {
		return ccl.Send(ctx, c, x, 1-c.Rank())
	}},
	{"Queue", func(ctx context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error {
		return c.On(nil).AllReduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Sum).Wait(ctx)
	}},
	{"Wait", func(ctx context.Context, c *ccl.Comm, x []float32, issued ccl.Work) error { return issued.Wait(ctx) }},
	{"Split", func(ctx context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error {
		_, err := c.Split(ctx, 0, 0)
		return err
	}},
	{"Shrink", func(ctx context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error {
		_, err := c.Shrink(ctx)
		return err
	}},
	{"MakeSlice", func(ctx context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error {
		_, err := ccl.MakeSlice[float32](ctx, c, 10)
		return err
	}},
	{"Err", func(_ context.Context, c *ccl.Comm, x []float32, _ ccl.Work) error { return c.Err() }},
}

func init() {
	parts["forks"] = func(ctx context.Context, c *ccl.Comm) {
		x := make([]float32, 1000)
		if err := ccl.AllReduce(ctx, c, x, x, ccl.Sum); err != nil {
			fmt.Println(err)
		}
		issued := c.On(nil).AllReduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Sum)
		if err := issued.Wait(ctx); err != nil {
			fmt.Println(err)
		}
		status, err := forked(func() int {
			for i, u := range inChild {
				var e *ccl.Error
				if err := u.use(ctx, c, x, issued); !errors.As(err, &e) || e.Code != ccl.ErrClosed || e.Rank != c.Rank() {
					return 1 + i
				}
			}
			c.Abort(nil)
			if c.Close() != nil {
				return 100
			}
			return 0
		})
		fmt.Printf("child of rank %d: status %d, %v\n", c.Rank(), status, err)
		time.Sleep(50 * time.Millisecond) // what the child might have told has arrived
		x[0] = 1
		err = ccl.AllReduce(ctx, c, x, x, ccl.Sum)
		fmt.Printf("rank %d goes on: %v %v\n", c.Rank(), x[0], err)
	}
}

// forked runs f in a child that has nothing of this process but its memory and this thread: what fork(2) makes. So f
// must not wait, and the collector must rest. The goroutine is not locked to its thread: if its time slice is over the child's
// scheduler is to go on with it there, where it would wake another thread for what else there is; and the slice begins anew
// just before.
func forked(f func() int) (status int, err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.Gosched()
	pid, _, e := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 {
		return -1, e
	}
	if pid == 0 {
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, uintptr(f()), 0, 0)
	}
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		var w syscall.WaitStatus
		switch got, err := syscall.Wait4(int(pid), &w, syscall.WNOHANG, nil); {
		case err != nil && err != syscall.EINTR:
			return -1, err
		case got == int(pid) && w.Exited():
			return w.ExitStatus(), nil
		case got == int(pid):
			return -1, fmt.Errorf("the child was ended by %v", w.Signal())
		}
		if time.Now().After(until) {
			syscall.Kill(int(pid), syscall.SIGKILL)
			return -1, errors.New("the child hangs")
		}
	}
}

// A child that was forked without exec is no rank, and does its parent no harm.
func TestR11ForkedChildIsNoRank(t *testing.T) {
	for _, hosts := range []int{0, 2} {
		_, text := processes(t, 2, hosts, "forks", "")
		for r := range 2 {
			require.Contains(t, text, fmt.Sprintf("child of rank %d: status 0, <nil>", r),
				"the status is 1 + the place in inChild of what went wrong")
			require.Contains(t, text, fmt.Sprintf("rank %d goes on: 2 <nil>", r))
		}
	}
	record(t, 11, "R11", "calls of a child that was forked without exec", "ErrClosed; the job goes on", "ErrClosed, %d of %d; it goes on (1 host, 2 hosts)", len(inChild), len(inChild))
}
