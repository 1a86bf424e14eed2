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

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/op"
)

// What NCCL and RCCL do at run time, by their sources, and the fake library with them: each of their habits, and an engine
// that minds none. README of test/fake lists the knobs, with the versions.

// inProcesses runs four ranks, each a process of its own, which do what child knows by that name.
func inProcesses(t *testing.T, v *vendor, do string, env ...string) {
	cmds := children(t, v, 4, do, env...)
	each(t, len(cmds), func(i int) error {
		out, err := cmds[i].CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}

// TestNoThreads: 10,000 calls of four ranks make no thread, in one process and in four (ncclGroupEndInternal, src/group.cc of NCCL 2.23.4
// and later, makes one for each call of a communicator that does not block).
func TestNoThreads(t *testing.T) {
	t.Setenv("FAKE_NCCL_ASYNC_ALL", "1")
	once(t, func(t *testing.T, v *vendor) {
		t.Run("threads", func(t *testing.T) {
			lib := keeps(t, v)
			const n = 4
			ranks := world(t, v, n)
			before := lib.Threads()
			each(t, n, func(i int) error { return ranks[i].steady(within(t)) })
			require.Equal(t, before, lib.Threads())
		})
		t.Run("processes", func(t *testing.T) { inProcesses(t, v, "steady") })
	})
}

// steady is a rank's quarter of 10,000 calls.
func (r *rank) steady(ctx context.Context) error {
	m, err := gpu.Alloc[int32](r.device, 1)
	if err != nil {
		return err
	}
	defer m.Free()
	for k := range 10_000 / 4 {
		if err := r.issueOne(m); err != nil {
			return err
		}
		if k%64 == 63 {
			if err := r.wait(ctx); err != nil {
				return err
			}
		}
	}
	return r.wait(ctx)
}

// TestHabits: all calls of four ranks, in one process and in four, give the right bytes whatever the library's habits, while two
// goroutines ask for its state; nobody is in a communicator that is being freed, and no call makes a thread.
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
		"graphs are not counted":             {"FAKE_NCCL_GRAPH_REFS", "0"},
	} {
		t.Run(name+"/threads", func(t *testing.T) {
			vendors(t, func(t *testing.T, v *vendor) {
				leaks(t, v)
				lib := keeps(t, v)
				t.Setenv(knobs[0], knobs[1])
				const n = 4
				ranks := world(t, v, n)
				before := lib.Threads()
				each(t, n, func(i int) error { return ranks[i].habits(within(t)) })
				require.Equal(t, before, lib.Threads())
				each(t, n, func(i int) error { return ranks[i].Close() })
			})
		})
		t.Run(name+"/processes", func(t *testing.T) {
			once(t, func(t *testing.T, v *vendor) { inProcesses(t, v, "habits", knobs[0]+"="+knobs[1]) })
		})
	}
}

// habits makes all calls, while two goroutines ask for the state.
func (r *rank) habits(ctx context.Context) error {
	done := make(chan struct{})
	var asking sync.WaitGroup
	var asked [2]error
	for i := range asked {
		asking.Go(func() {
			for {
				select {
				case <-done:
					return
				case <-time.After(100 * time.Microsecond):
					asked[i] = errors.Join(asked[i], r.Err())
				}
			}
		})
	}
	err := r.performSome(ctx)
	close(done)
	asking.Wait()
	return errors.Join(err, asked[0], asked[1])
}

// mindful is nil if what a process has done has made no thread in the library, and nothing that a real one would be broken by.
func mindful(file string) error {
	lib, err := cside.Open(file)
	if err != nil {
		return err
	}
	if threads, violations := lib.Threads(), lib.Violations(); threads+violations > 0 {
		return fmt.Errorf("calls have made %d threads, and there were %d violations", threads, violations)
	}
	return nil
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
			if err := r.perform(ctx, exampleOf(kind, op.Float32, op.Sum, r.group.Rank, r.group.Size, 5), p); err != nil {
				return fmt.Errorf("kind %d, %v: %w", kind, p, err)
			}
		}
	}
	return nil
}

// TestContexts: a rank makes a context on its own device alone, whatever the library puts back.
func TestContexts(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		inProcesses(t, v, "calls", "NATIVE_TEST_CONTEXTS=1")
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
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := errors.Join(<-done, r.wait(ctx)); err != nil {
		r.Abort()
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
		e := r.end()
		for range 8 { // one at a time
			each(t, 1, func(int) error {
				runtime.LockOSThread() // never unlocked, so that the thread ends with its goroutine
				release, err := e.Register(at, 4)
				require.NoError(t, err)
				return release()
			})
		}
		require.NoError(t, m.Free())
	})
}
