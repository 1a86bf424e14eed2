//go:build (nccl || rccl) && cgo && linux

package native

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/engine"
	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/gpu"
)

// What NCCL and RCCL do at run time, by their sources, and the fake library with them: each of their habits, and an engine
// that minds none. README of test/fake lists the knobs, with the versions.

// TestNoThreads: 10,000 calls of four ranks make no thread (ncclGroupEndInternal, src/group.cc of NCCL 2.23.4 and later, makes one for
// each call of a communicator that does not block).
func TestNoThreads(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		lib := keeps(t, v)
		const n, calls = 4, 10_000 / 4
		ranks := world(t, v, n)
		before := lib.Threads()
		each(t, n, func(i int) error {
			m := ranks[i].memory(t)
			defer m.Free()
			for k := range calls {
				if err := ranks[i].issueOne(m); err != nil {
					return err
				}
				if k%64 == 63 {
					if err := ranks[i].wait(within(t)); err != nil {
						return err
					}
				}
			}
			return ranks[i].wait(within(t))
		})
		require.Equal(t, before, lib.Threads())
	})
}

// TestHabits: all calls give the right bytes whatever the library's habits, while two goroutines ask for its state, and nobody is
// in a communicator that is being freed.
func TestHabits(t *testing.T) {
	for name, knobs := range map[string][2]string{
		"every call is asynchronous":         {"FAKE_NCCL_ASYNC_ALL", "1"},
		"success while under way":            {"FAKE_NCCL_HIDE", "p2p,coll,alltoall"},
		"the state joins a call's thread":    {"FAKE_NCCL_GAE_JOINS", "1"},
		"a call belongs to its thread":       {"FAKE_NCCL_JOB", "thread"},
		"a start that does not block blocks": {"FAKE_NCCL_INIT_SYNC", "1"},
		"the first call waits for all":       {"FAKE_NCCL_CONNECT", "2000"},
		"a stream holds four operations":     {"FAKE_STREAM_DEPTH", "4"},
		"the last word is the environment's": {"NCCL_COMM_BLOCKING", "1"},
		"an operation takes a millisecond":   {"FAKE_DELAY_US", "1000"},
	} {
		t.Run(name, func(t *testing.T) {
			vendors(t, func(t *testing.T, v *vendor) {
				leaks(t, v)
				keeps(t, v)
				t.Setenv(knobs[0], knobs[1])
				const n = 2
				ranks := world(t, v, n)
				done := make(chan struct{})
				var asking sync.WaitGroup
				for _, r := range append(ranks, ranks...) {
					asking.Go(func() {
						for {
							select {
							case <-done:
								return
							case <-time.After(100 * time.Microsecond):
								assert.NoError(t, r.Err())
							}
						}
					})
				}
				each(t, n, func(i int) error { return ranks[i].performSome(within(t)) })
				close(done)
				asking.Wait()
				each(t, n, func(i int) error { return ranks[i].Close() })
			})
		})
	}
}

// TestStrangers: a start waits for its ranks alone, though others connect with its sockets and leave, as another package's test
// may do on the same machine.
func TestStrangers(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		done := make(chan struct{})
		var connecting sync.WaitGroup
		var connected int
		connecting.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				sockets, _ := os.ReadFile("/proc/net/unix")
				for line := range strings.Lines(string(sockets)) {
					_, name, found := strings.Cut(strings.TrimSpace(line), " @fake-nccl-")
					if !found {
						continue
					}
					if c, err := net.Dial("unix", "@fake-nccl-"+name); err == nil {
						connected++
						c.Close()
					}
				}
			}
		})
		for range 10 {
			ranks := world(t, v, 3)
			each(t, 3, func(i int) error { return ranks[i].Close() })
		}
		close(done)
		connecting.Wait()
		t.Log(connected, "connections of strangers")
	})
}

// performSome makes one call of each kind, at each place.
func (r *rank) performSome(ctx context.Context) error {
	for _, kind := range kinds {
		for p := onDevice; p <= onHost; p++ {
			if err := r.perform(ctx, exampleOf(kind, engine.Float32, engine.Sum, r.group.Rank, r.group.Size, 5), p); err != nil {
				return fmt.Errorf("kind %d, %v: %w", kind, p, err)
			}
		}
	}
	return nil
}

// TestContexts: a rank makes a context on its own device alone, whatever the library puts back.
func TestContexts(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		cmds := children(t, v, 4, "calls", "NATIVE_TEST_CONTEXTS=1")
		each(t, len(cmds), func(i int) error {
			out, err := cmds[i].CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, out)
			}
			return nil
		})
	})
}

// ownContext is an error if the process has a context elsewhere than on r's device, also after a call from a thread that has
// chosen none.
func (r *rank) ownContext() error {
	m, err := gpu.Alloc[int32](r.device, 1)
	if err != nil {
		return err
	}
	defer m.Free()
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- r.issueOne(m)
	}()
	if err := errors.Join(<-done, r.wait(context.Background())); err != nil {
		return err
	}
	c, err := cside.Open(os.Getenv(r.lib.v.search.Env))
	if err != nil {
		return err
	}
	if got, want := c.Contexts(), 1<<r.group.Device; got != want {
		return fmt.Errorf("contexts on devices %b, should be %b", got, want)
	}
	return nil
}

// TestFreshThread: memory is registered from a thread that has chosen no device (cuMemGetAddressRange in ncclRegister, NCCL 2.30.3 on,
// needs a context).
func TestFreshThread(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		r := world(t, v, 1)[0]
		m := r.memory(t)
		at, _ := m.Ptr()
		e := r.Engine.(engine.Registrar)
		for range 8 { // one at a time
			each(t, 1, func(int) error {
				runtime.LockOSThread() // never unlocked, so that the thread ends with its goroutine
				h, err := e.Register(at, 4)
				if err != nil {
					return err
				}
				return e.Deregister(h)
			})
		}
		require.NoError(t, m.Free())
	})
}
