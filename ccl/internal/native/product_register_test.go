//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/internal/native/cside"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// fakeOf is the fake library behind a backend.
func fakeOf(t testing.TB, name string) cside.Library {
	c, err := cside.Open(os.Getenv(libraryOf[name]))
	require.NoError(t, err)
	return c
}

// TestProductRegister: a rank registers memory, others do not; calls on it are right; it is released once, or by Close.
func TestProductRegister(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		fake := fakeOf(t, name)
		for _, job := range jobs {
			t.Run(job.name, func(t *testing.T) {
				before, broken := fake.Registered(), fake.Violations()
				ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
					r := begin(t, c, rt)
					x := r.mem(1, 2, 3)
					var releases []func() error
					if c.Rank() > 0 {
						for _, b := range []ccl.Buf{ccl.BufOfMemory(x), ccl.BufOfMemory(x).From(1, 2), ccl.BufOfMemory(x).From(1, 1)} {
							release, err := c.Register(t.Context(), b)
							require.NoError(t, err)
							releases = append(releases, release)
						}
					}
					assert.Equal(t, []int32{3, 6, 9}, r.ends(sumOf(r.q, x), x))
					for i, release := range releases {
						if c.Rank() == 2 && i == 0 {
							continue // Close does it
						}
						assert.NoError(t, release())
						assert.NoError(t, release())
					}
				}, append(job.opts, ccltest.With(ccl.Options{Backend: name}))...)
				require.Equal(t, before, fake.Registered())
				require.Equal(t, broken, fake.Violations())
			})
		}
	})
}

// TestProductRegisterBytes: what is registered is all bytes of a Buf, of which a library knows nothing else.
func TestProductRegisterBytes(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		fake := fakeOf(t, name)
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &ccl.Options{Backend: name})
		require.NoError(t, err)
		defer c.Close()
		x := begin(t, c, rt).mem(1, 2, 3)
		for _, tc := range []struct {
			b    ccl.Buf
			want int
		}{{ccl.BufOfMemory(x), 12}, {ccl.BufOfMemory(x).From(1, 2), 4}, {ccl.BufOfMemory(x).From(1, 1), 0}} {
			before := fake.RegisteredBytes()
			_, err := c.Register(t.Context(), tc.b)
			require.NoError(t, err)
			require.Equal(t, tc.want, fake.RegisteredBytes()-before)
		}
	})
}

// TestProductRegisterRefuses: what cannot be registered is an error that says why; the Comm goes on. A release that comes after
// the end of the Comm does nothing.
func TestProductRegisterRefuses(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &ccl.Options{Backend: name})
		require.NoError(t, err)
		defer c.Close()
		r := begin(t, c, rt)
		x := r.mem(1, 2)
		freed, err := gpu.Alloc[int32](r.d, 2)
		require.NoError(t, err)
		require.NoError(t, freed.Free())
		d5, err := rt.Device(5)
		require.NoError(t, err)
		far, err := gpu.Alloc[int32](d5, 2)
		require.NoError(t, err)
		defer far.Free()
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for _, tc := range []struct {
			name string
			ctx  context.Context
			b    ccl.Buf
			code ccl.Code
			text string
		}{
			{"freed", t.Context(), ccl.BufOfMemory(freed), ccl.ErrArgument, "the device memory was freed"},
			{"host", t.Context(), ccl.BufOf([]int32{1}), ccl.ErrArgument, "host memory where device memory is needed"},
			{"elsewhere", t.Context(), ccl.BufOfMemory(far), ccl.ErrArgument, "the memory is on device 5, the Comm on device 0"},
			{"bounds", t.Context(), ccl.BufOfMemory(x).From(1, 3), ccl.ErrArgument, "out of bounds"},
			{"in place", t.Context(), ccl.InPlace(), ccl.ErrArgument, "InPlace is valid only as src"},
			{"another package", t.Context(), ccl.BufOfMemory(foreign{x}), ccl.ErrArgument, "the memory is from package acme"},
			{"context", over, ccl.BufOfMemory(x), ccl.ErrCanceled, "context canceled"},
		} {
			_, err := c.Register(tc.ctx, tc.b)
			require.ErrorIs(t, err, tc.code, tc.name)
			require.ErrorContains(t, err, "rank 0: Register", tc.name)
			require.ErrorContains(t, err, tc.text, tc.name)
		}
		t.Setenv("FAKE_FAIL", "ncclCommRegister:0:4")
		_, err = c.Register(t.Context(), ccl.BufOfMemory(x))
		require.ErrorIs(t, err, ccl.ErrBackend)
		require.ErrorContains(t, err, "ncclCommRegister: invalid argument")
		t.Setenv("FAKE_FAIL", "")
		require.Equal(t, []int32{1, 2}, r.ends(sumOf(r.q, x), x))

		release, err := c.Register(t.Context(), ccl.BufOfMemory(x))
		require.NoError(t, err)
		c.Abort(errors.New("enough"))
		<-c.Done()
		require.NoError(t, release())
		_, err = c.Register(t.Context(), ccl.BufOfMemory(x))
		require.ErrorContains(t, err, "enough")
		require.NoError(t, c.Close())
		require.NoError(t, release())
		_, err = c.Register(t.Context(), ccl.BufOfMemory(x))
		require.ErrorIs(t, err, ccl.ErrClosed)
	})
}
