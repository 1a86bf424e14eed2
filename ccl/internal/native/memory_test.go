//go:build (nccl || rccl) && cgo && linux

package native

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/engine"
)

// windows is the fake library, whose windows must be as many after the test as before.
func windows(t *testing.T, v *vendor) cside.Library {
	t.Helper()
	open(t, v)
	c, err := cside.Open(os.Getenv(v.search.Env))
	require.NoError(t, err)
	before := c.Windows()
	t.Cleanup(func() { require.Equal(t, before, c.Windows(), "windows") })
	return c
}

// TestMemory: the library's memory is its own to free, once, and outlives communicators. A library that has none says so.
func TestMemory(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		lib := open(t, v)
		p, err := lib.Alloc(1, 1<<16)
		if lib.t.MemAlloc == nil {
			var lacks *engine.Lacks
			require.ErrorAs(t, err, &lacks)
			require.EqualError(t, err, lib.Version()+" has no ncclMemAlloc; that needs "+v.title+" 2.19")
			return
		}
		require.NoError(t, err)
		require.NotZero(t, p)
		d, err := v.runtime.Device(1)
		require.NoError(t, err)
		require.NoError(t, d.Owns(p))
		require.NoError(t, lib.Free(1, p))
		var failure *engine.LibraryError
		require.ErrorAs(t, lib.Free(1, p), &failure)
		require.Equal(t, "ncclMemFree", failure.Call)
		_, err = lib.Alloc(0, 1<<60)
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
			lacks := ranks[0].lib.Windows()
			each(t, 3, func(i int) error {
				r := ranks[i]
				w := r.Engine.(engine.Windower)
				if lacks != nil {
					if _, err := w.Window(4096, size); err == nil || err.Error() != lacks.Error() {
						return fmt.Errorf("a library that makes no windows: %w", err)
					}
					return nil
				}
				p, err := r.lib.Alloc(r.group.Device, size)
				if err != nil {
					return err
				}
				h, err := w.Window(p, size)
				if err != nil || h != 0 != tc.want {
					return fmt.Errorf("%s: handle %#x, %w", tc.name, h, err)
				}
				if err := r.performSome(within(t)); err != nil {
					return err
				}
				if h != 0 {
					if err := w.CloseWindow(h); err != nil {
						return err
					}
					if err := w.CloseWindow(h); err == nil {
						return errors.New("closed twice")
					}
				}
				return r.lib.Free(r.group.Device, p)
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
		memory := make([]uintptr, 2)
		each(t, 2, func(i int) (err error) {
			r := ranks[i]
			r.closed = true
			if memory[i], err = r.lib.Alloc(i, 1<<16); err != nil {
				return err
			}
			if _, err := r.Engine.(engine.Windower).Window(memory[i], 1<<16); err != nil {
				return err
			}
			return r.Close()
		})
		each(t, 2, func(i int) error { return ranks[i].lib.Free(i, memory[i]) })
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
				memory := make([]uintptr, 2)
				errs := all(2, func(i int) (err error) {
					r := ranks[i]
					r.closed = true
					defer r.Close()
					if memory[i], err = r.lib.Alloc(i, 1<<16); err != nil {
						return err
					}
					at := memory[i]
					if i == 0 {
						at++ // not aligned
						defer func() {
							time.Sleep(10 * time.Millisecond) // rank 1 may be inside: right either way
							ranks[1].Abort()
						}()
					}
					_, err = r.Engine.(engine.Windower).Window(at, 1<<15)
					return err
				})
				var failure *engine.LibraryError
				require.ErrorAs(t, errs[0], &failure)
				require.Equal(t, 4, failure.Result)
				require.Error(t, errs[1])
				if revokes { // else the call is still inside
					for i, p := range memory {
						require.NoError(t, ranks[i].lib.Free(i, p))
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
		p, err := r.lib.Alloc(0, 1<<16)
		require.NoError(t, err)
		w := r.Engine.(engine.Windower)
		h, err := w.Window(p, 1<<16)
		require.NoError(t, err)
		require.NoError(t, r.lib.Free(0, p))
		require.Equal(t, before+1, c.Violations())
		var failure *engine.LibraryError
		require.ErrorAs(t, w.CloseWindow(h), &failure)
		require.Equal(t, "ncclCommWindowDeregister", failure.Call)

		m := r.memory(t) // cudaMalloc's, which has no window
		at, _ := m.Ptr()
		_, err = w.Window(at, 4)
		require.ErrorAs(t, err, &failure)
		require.Equal(t, "ncclCommWindowRegister", failure.Call)
		require.NoError(t, m.Free())
	})
}
