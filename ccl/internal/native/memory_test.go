//go:build (nccl || rccl) && cgo && linux

package native

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/engine"
)

// windows is the fake library, whose windows must be as many after the test as before.
func windows(t *testing.T, v *vendor) cside.Library {
	t.Helper()
	c := v.fake(t)
	before := c.Windows()
	t.Cleanup(func() { require.Equal(t, before, c.Windows(), "windows") })
	return c
}

// TestMemory: the library's memory is its own to free, once, and outlives communicators. A library that has none says so.
func TestMemory(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		lib := open(t, v)
		on := func(device int) *end { return &end{lib: lib, group: engine.Group{Device: device}} }
		p, free, err := on(1).Alloc(1 << 16)
		if lib.t.MemAlloc == nil {
			var lacks *engine.Lacks
			require.ErrorAs(t, err, &lacks)
			require.EqualError(t, err, lib.Version()+" has no ncclMemAlloc; that needs "+v.title+" 2.19")
			return
		}
		require.NoError(t, err)
		require.NotZero(t, p)
		require.NoError(t, v.runtime.Owns(1, p))
		require.NoError(t, free())
		var failure *engine.LibraryError
		require.ErrorAs(t, free(), &failure)
		require.Equal(t, "ncclMemFree", failure.Call)
		_, _, err = on(0).Alloc(1 << 60)
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "ncclMemAlloc", failure.Call)
		require.Contains(t, failure.Text, "out of memory")
	})
}

// TestWindow: all ranks make one, or none; it is closed by each on its own. A library without windows says so, one that makes none
// here gives no handle, whether it writes NULL (2.27) or nothing (2.28).
func TestWindow(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		keeps(t, v)
		windows(t, v)
		const size = 1 << 16
		for _, tc := range []struct {
			name, version string
			window        string
			want          bool
		}{
			{"2.28", "22809", "", true},
			{"2.27", "22707", "", true},
			{"2.28 makes none", "22809", "none", false},
			{"2.27 makes none", "22707", "none", false},
		} {
			t.Setenv("FAKE_NCCL_VERSION", tc.version)
			t.Setenv("FAKE_NCCL_WINDOW", tc.window)
			ranks := world(t, v, 3)
			lacks := ranks[0].lib.windows()
			each(t, 3, func(i int) error {
				r := ranks[i]
				w := r.end()
				if lacks != nil {
					if _, err := w.Window(4096, size); err == nil || err.Error() != lacks.Error() {
						return fmt.Errorf("a library that makes no windows: %w", err)
					}
					return nil
				}
				p, free, err := w.Alloc(size)
				require.NoError(t, err)
				release, err := w.Window(p, size)
				if err != nil || release != nil != tc.want {
					return fmt.Errorf("%s: a window: %t, %w", tc.name, release != nil, err)
				}
				require.NoError(t, r.performSome(within(t)))
				if release != nil {
					require.NoError(t, release())
					if err := release(); err == nil {
						return errors.New("closed twice")
					}
				}
				return free()
			})
			if lacks != nil {
				require.EqualError(t, lacks, ranks[0].lib.Version()+" has no ncclCommWindowRegister; that needs "+v.title+" 2.27")
				return
			}
		}
	})
}

// TestWindowClosesWithItsCommunicator: what a rank has not closed goes then.
func TestWindowClosesWithItsCommunicator(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		keeps(t, v)
		windows(t, v)
		ranks := world(t, v, 2)
		free := make([]func() error, 2)
		each(t, 2, func(i int) (err error) {
			r := ranks[i]
			r.closed = true
			var at uintptr
			if at, free[i], err = r.end().Alloc(1 << 16); err != nil {
				return err
			}
			if _, err := r.end().Window(at, 1<<16); err != nil {
				return err
			}
			return r.Close()
		})
		each(t, 2, func(i int) error { return free[i]() })
	})
}

// TestWindowRefusesOne: what is wrong on one rank keeps the others inside the library, and Abort ends that, where the library cannot make
// the call come back as well.
func TestWindowRefusesOne(t *testing.T) {
	for _, revokes := range []bool{true, false} {
		t.Run(fmt.Sprintf("revoke=%v", revokes), func(t *testing.T) {
			vendors(t, func(t *testing.T, v *vendor) {
				windows(t, v)
				if !revokes {
					t.Setenv("FAKE_FAIL", "ncclCommRevoke:0:3")
				}
				ranks := world(t, v, 2)
				free := make([]func() error, 2)
				errs := all(2, func(i int) (err error) {
					r := ranks[i]
					r.closed = true
					defer r.Close()
					var at uintptr
					if at, free[i], err = r.end().Alloc(1 << 16); err != nil {
						return err
					}
					if i == 0 {
						at++ // not aligned
						defer func() {
							time.Sleep(10 * time.Millisecond) // rank 1 may be inside: right either way
							ranks[1].Abort()
						}()
					}
					_, err = r.end().Window(at, 1<<15)
					return err
				})
				var failure *engine.LibraryError
				require.ErrorAs(t, errs[0], &failure)
				require.Equal(t, 4, failure.Result)
				require.Error(t, errs[1])
				if revokes { // else the call is still inside
					for i := range free {
						require.NoError(t, free[i]())
					}
				}
			})
		})
	}
}

// TestWindowOfFreedMemory: to free the memory first is counted as what it is, and the window's end says so.
func TestWindowOfFreedMemory(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		c := windows(t, v)
		before := c.Violations()
		r := world(t, v, 1)[0]
		w := r.end()
		p, free, err := w.Alloc(1 << 16)
		require.NoError(t, err)
		release, err := w.Window(p, 1<<16)
		require.NoError(t, err)
		require.NoError(t, free())
		require.Equal(t, before+1, c.Violations())
		var failure *engine.LibraryError
		require.ErrorAs(t, release(), &failure)
		require.Equal(t, "ncclCommWindowDeregister", failure.Call)

		m := r.memory(t) // cudaMalloc's, which has no window
		at, _ := m.Ptr()
		_, err = w.Window(at, 4)
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "ncclCommWindowRegister", failure.Call)
		require.NoError(t, m.Free())
	})
}
