//go:build (nccl || rccl) && cgo && linux

package native

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestClose: calls after it say so, and what came before it is done.
func TestClose(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		ranks := world(t, v, 2)
		each(t, 2, func(i int) error {
			r := ranks[i]
			m := r.memory(t)
			defer m.Free()
			for range 100 {
				require.NoError(t, r.issueOne(m))
			}
			if r.Native() == 0 {
				return errors.New("no handle")
			}
			require.NoError(t, r.Close())
			require.NoError(t, r.Close())
			r.Abort()
			require.ErrorIs(t, r.issueOne(m), errClosed, "a call after Close")
			_, err := r.Mark(r.handle())
			require.ErrorIs(t, err, errClosed, "a Mark after Close")
			if r.Native() != 0 || r.Err() != nil {
				return errors.New("still there")
			}
			return nil
		})
	})
}

// TestFullStream: behind an operation that hangs the stream takes no more, so calls and marks wait inside the library.
// Abort makes them come back where NCCL has ncclCommRevoke, from 2.28.7 on; else it gives the communicator up, says so, and
// frees nothing under them.
func TestFullStream(t *testing.T) {
	for _, revokes := range []bool{true, false} {
		t.Run(fmt.Sprintf("revoke=%v", revokes), func(t *testing.T) {
			once(t, func(t *testing.T, v *vendor) {
				leaks(t, v)
				keeps(t, v)
				t.Setenv("FAKE_NCCL_HANG", "1")
				t.Setenv("FAKE_STREAM_DEPTH", "3")
				if !revokes {
					t.Setenv("FAKE_FAIL", "ncclCommRevoke:0:3")
				}
				r := world(t, v, 1)[0]
				r.closed = true
				m := r.memory(t)
				inside := make(chan error, 2)
				go func() {
					var err error
					for err == nil {
						err = r.issueOne(m)
					}
					inside <- err
				}()
				e := r.end()
				require.Eventually(t, func() bool { return !e.returned(50 * time.Millisecond) }, limit, time.Millisecond)
				go func() {
					_, err := r.Mark(r.handle())
					inside <- err
				}()
				start := time.Now()
				r.Abort()
				if revokes {
					for range 2 {
						select {
						case <-inside:
						case <-time.After(soon):
							t.Fatal("it has not come back")
						}
					}
					require.NoError(t, r.Close())
				} else {
					require.ErrorContains(t, r.Close(), "the call and its memory are abandoned")
					os.Unsetenv("FAKE_FAIL") // and so that nothing hangs on in this process:
					e.revoke()
					<-inside
					<-inside
					e.abortNow()
					e.free()
				}
				require.Less(t, time.Since(start), closeWait+soon)
				require.NoError(t, r.stream.Wait(within(t)))
				require.NoError(t, m.Free())
			})
		})
	}
}

// TestCloseLasts: Close comes back, and says what it waits for, while a graph is open that was captured from the communicator
// (persistentRefs, src/init.cc), and while ncclCommAbort hangs (NCCL's issue 829). A library that keeps no count of graphs is not
// waited for.
func TestCloseLasts(t *testing.T) {
	for _, tc := range []struct {
		name, refs string // FAKE_NCCL_GRAPH_REFS
		abort      bool
		want       string // of Close
	}{
		{"graph", "1", false, "ncclCommDestroy has not returned: a graph captured from the communicator may still be open"},
		{"graph after Abort", "1", true, "ncclCommAbort, or ncclCommRevoke before it, has not returned: a graph captured from the communicator may still be open"},
		{"graph that is not counted", "0", false, ""},
		{"graph that is not counted, after Abort", "0", true, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			vendors(t, func(t *testing.T, v *vendor) {
				leaks(t, v)
				lib := keeps(t, v)
				t.Setenv("FAKE_NCCL_GRAPH_REFS", tc.refs)
				r := world(t, v, 1)[0]
				r.impatient()
				m := r.memory(t)
				require.NoError(t, r.stream.BeginCapture())
				require.NoError(t, r.issueOne(m))
				g, err := r.stream.EndCapture()
				require.NoError(t, err)
				communicators := lib.Live()[4]
				if tc.abort {
					r.Abort()
				}
				if err = r.Close(); tc.want == "" {
					require.NoError(t, err)
					require.Equal(t, communicators-1, lib.Live()[4], "it was freed under the graph")
				} else {
					require.ErrorContains(t, err, tc.want)
					require.Equal(t, communicators, lib.Live()[4])
				}
				require.NoError(t, g.Close()) // then it goes
				require.NoError(t, m.Free())
			})
		})
	}
	t.Run("abort", func(t *testing.T) {
		once(t, func(t *testing.T, v *vendor) {
			leaks(t, v)
			keeps(t, v)
			t.Setenv("FAKE_NCCL_ABORT_HANG", "1")
			r := world(t, v, 1)[0]
			r.impatient()
			r.Abort()
			require.ErrorContains(t, r.Close(), "ncclCommAbort, or ncclCommRevoke before it, has not returned")
		})
	})
}

// impatient makes r's Close wait less, and leaves it to the test.
func (r *rank) impatient() {
	r.closed = true
	r.end().closing.patience = 200 * time.Millisecond
}

// TestAskedWhileAborted: Abort frees the communicator only once ncclCommGetAsyncError has come back, however long it takes.
func TestAskedWhileAborted(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		lib := keeps(t, v)
		r := world(t, v, 1)[0]
		t.Setenv("FAKE_NCCL_GAE_US", "250000")
		asked := make(chan struct{})
		go func() {
			r.Err()
			close(asked)
		}()
		require.Eventually(t, func() bool { return lib.Asking() > 0 }, limit, time.Millisecond)
		r.Abort()
		<-asked
		require.NoError(t, r.Close())
	})
}

// TestAbortLasts: while ncclCommAbort waits, another communicator of the device goes on.
func TestAbortLasts(t *testing.T) {
	once(t, func(t *testing.T, v *vendor) {
		lib := keeps(t, v)
		stuck, well := world(t, v, 1)[0], world(t, v, 1)[0]
		m := well.memory(t)
		require.NoError(t, well.issueOne(m))
		t.Setenv("FAKE_FAIL", "ncclCommRevoke:0:3") // else Abort does no more
		t.Setenv("FAKE_NCCL_ABORT_US", "1000000")
		stuck.Abort()
		e := stuck.end()
		require.Eventually(t, func() bool { return lib.Aborting() > 0 }, limit, time.Millisecond)
		require.NoError(t, well.issueOne(m))
		require.NoError(t, well.wait(within(t)))
		select {
		case <-e.ended:
			t.Fatal("the call has waited for the other's Abort")
		default:
		}
		require.NoError(t, m.Free())
	})
}
