//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/internal/native"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// soon is ten times what a failure may take to be known everywhere.
const soon = 20 * time.Second

// libraryOf names the library of a backend.
var libraryOf = map[string]string{"nccl": "GOCCL_NCCL_LIB", "rccl": "GOCCL_RCCL_LIB"}

// leaves fails the test if the fake library has more when it ends than now.
func leaves(t *testing.T, backend string) { native.Leaks(t, fakeOf(t, backend)) }

// job makes n ranks in this process, for what is to fail: f is every rank's, and its error is that rank's.
func job(t *testing.T, n int, o ccl.Options, rt *gpu.Runtime, f func(ctx context.Context, r *on) error) []error {
	return jobWith(t, n, func(int) *ccl.Options { own := o; return &own }, rt, f)
}

// crowd lets the ranks of a job meet, so that a limit counts for what a test times and not for a rank that comes late to it.
type crowd struct {
	mu   sync.Mutex
	size int
	came int
	full chan struct{}
}

// come counts a rank in, and returns what is closed once all have come.
func (c *crowd) come() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	full := c.full
	if c.came++; c.came == c.size {
		c.came, c.full = 0, make(chan struct{})
		close(full)
	}
	return full
}

// meet waits for all ranks of the job to meet, and returns why the Comm has failed if it has meanwhile.
func (r *on) meet(ctx context.Context) error {
	select {
	case <-r.all.come():
	case <-r.c.Done():
	case <-ctx.Done():
	}
	return r.c.Err()
}

// jobWith is job with options of each rank's own. All ranks begin f together.
func jobWith(t *testing.T, n int, options func(rank int) *ccl.Options, rt *gpu.Runtime, f func(ctx context.Context, r *on) error) []error {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	errs := make([]error, n)
	all := &crowd{size: n, full: make(chan struct{})}
	var wg sync.WaitGroup
	for i, b := range boot.Local(n) {
		wg.Go(func() {
			c, err := ccl.NewComm(ctx, b, options(i))
			if err != nil {
				all.come()
				errs[i] = err
				return
			}
			d, err := rt.Local(i, n)
			require.NoError(t, err)
			s, err := d.NewStream()
			require.NoError(t, err)
			defer func() {
				c.Close()
				synced := make(chan error, 1)
				go func() { synced <- s.Synchronize() }()
				select { // a failed call does not hold the stream
				case <-synced:
					assert.NoError(t, s.Close())
				case <-time.After(soon):
					t.Errorf("rank %d: its stream stands still", i)
				}
			}()
			r := &on{t: t, c: c, d: d, s: s, q: c.On(s), me: i, n: n, all: all}
			_ = r.meet(ctx)
			errs[i] = f(ctx, r)
		})
	}
	wg.Wait()
	return errs
}

// well is job for what is not to fail.
func well(t *testing.T, n int, o ccl.Options, rt *gpu.Runtime, f func(ctx context.Context, r *on)) {
	t.Helper()
	require.NoError(t, errors.Join(job(t, n, o, rt, func(ctx context.Context, r *on) error { f(ctx, r); return nil })...))
	if t.Failed() { // a rank has required something
		t.FailNow()
	}
}

// wellOnEach is well on each backend, which leaves nothing; t is that of the backend.
func wellOnEach(t *testing.T, n int, o ccl.Options, f func(ctx context.Context, t *testing.T, r *on)) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		o.Backend = name
		well(t, n, o, rt, func(ctx context.Context, r *on) { f(ctx, t, r) })
	})
}

// sums makes k all-reduces of one element, one after the other, up to the first that fails.
func (r *on) sums(ctx context.Context, k int) error {
	x, err := gpu.Alloc[int32](r.d, 1)
	if err != nil {
		return err
	}
	defer x.Free()
	if err := x.Put([]int32{1}); err != nil {
		return err
	}
	for range k {
		if err := r.q.AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Max).Wait(ctx); err != nil {
			r.c.Close() // memory of a call that is stuck is not given back before
			return err
		}
	}
	return nil
}

// failure is err's Error of that code.
func failure(t *testing.T, rank int, err error, code ccl.Code) *ccl.Error {
	var e *ccl.Error
	if !assert.ErrorAs(t, err, &e, "rank %d", rank) {
		return &ccl.Error{}
	}
	assert.Equal(t, code, e.Code, "rank %d: %v", rank, err)
	return e
}

var knobRuns int

// TestProductKnobs: each way in which the library fails is one Code, on every rank, and nothing is left.
func TestProductKnobs(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		for _, tc := range []struct {
			name string
			env  map[string]string
			opt  ccl.Options
			code ccl.Code
			text string
		}{
			{"start", map[string]string{"FAKE_FAIL": "ncclCommInitRank:2:2", "FAKE_NCCL_INIT_TIMEOUT": "1"}, ccl.Options{}, ccl.ErrBackend, "ncclCommInitRank"},
			{"unique id", map[string]string{"FAKE_FAIL": "ncclGetUniqueId:0:3"}, ccl.Options{}, ccl.ErrBackend, "ncclGetUniqueId"},
			{"call", map[string]string{"FAKE_FAIL": "ncclAllReduce:5:5"}, ccl.Options{}, ccl.ErrBackend, "ncclAllReduce"},
			{"asynchronous", map[string]string{"FAKE_NCCL_ASYNC": "3:6", "FAKE_NCCL_RANK": "1"}, ccl.Options{}, ccl.ErrBackend, ""},
			{"hang", map[string]string{"FAKE_NCCL_HANG": "3", "FAKE_NCCL_RANK": "1"}, ccl.Options{Timeout: 300 * time.Millisecond}, ccl.ErrTimeout, ""},
		} {
			t.Run(tc.name, func(t *testing.T) {
				leaves(t, name)
				for k, v := range tc.env {
					if k == "FAKE_FAIL" {
						knobRuns++
						v += fmt.Sprintf(",%s:%d:1", name, knobRuns) // counts begin anew when the knob changes
					}
					t.Setenv(k, v)
				}
				o := tc.opt
				o.Backend = name
				start := time.Now()
				for rank, err := range job(t, 3, o, rt, func(ctx context.Context, r *on) error { return r.sums(ctx, 20) }) {
					e := failure(t, rank, err, tc.code)
					assert.Contains(t, e.Error(), tc.text)
				}
				assert.Less(t, time.Since(start), soon)
			})
		}
	})
}

// A start that never ends is ended by ctx, on every rank.
func TestProductStartWithoutEnd(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		t.Setenv("FAKE_NCCL_IN_PROGRESS", "1")
		t.Setenv("FAKE_NCCL_INIT_TIMEOUT", "1")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		start := time.Now()
		for i, b := range boot.Local(2) {
			wg.Go(func() {
				_, err := ccl.NewComm(ctx, b, &ccl.Options{Backend: name})
				failure(t, i, err, ccl.ErrTimeout)
			})
		}
		wg.Wait()
		assert.Less(t, time.Since(start), soon)
	})
}

// TestProductMismatch: ranks that make different calls know it, and which, before they would hang.
func TestProductMismatch(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict} {
			type call = func(q ccl.Queue, x ccl.Buf) ccl.Work
			sum := func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.AllReduce(x, ccl.InPlace(), ccl.Sum) }
			from := func(root int) call { return func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.Broadcast(x, root) } }
			for what, calls := range map[string][2]call{ // by rank
				"operator": {sum, func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.AllReduce(x, ccl.InPlace(), ccl.Max) }},
				"count":    {sum, func(q ccl.Queue, x ccl.Buf) ccl.Work { return q.AllReduce(x.From(0, 3), ccl.InPlace(), ccl.Sum) }},
				"kind":     {sum, from(0)},
				"root":     {from(0), from(1)},
			} {
				t.Run(check.String()+"/"+what, func(t *testing.T) {
					leaves(t, name)
					start := time.Now()
					var issued sync.WaitGroup // the fake's calls of two roots wait for nobody
					issued.Add(2)
					errs := job(t, 2, ccl.Options{Backend: name, Check: check}, rt, func(ctx context.Context, r *on) error {
						x := r.mem(1, 2, 3, 4)
						defer r.c.Close()
						w := calls[r.me](r.q, ccl.BufOfMemory(x))
						issued.Done()
						issued.Wait()
						return w.Wait(ctx)
					})
					for rank, err := range errs {
						e := failure(t, rank, err, ccl.ErrMismatch)
						assert.Equal(t, 1-rank, e.Peer, "rank %d: %v", rank, err)
					}
					assert.Less(t, time.Since(start), soon)
				})
			}
		}
	})
}
