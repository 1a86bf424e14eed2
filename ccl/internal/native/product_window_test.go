//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// make is memory of n elements of the library, and how a device sees it.
func (r *on) make(n int) (ccl.Memory[int32], *gpu.Mem[int32]) {
	m, err := ccl.MakeDevice[int32](r.t.Context(), r.c, n)
	require.NoError(r.t, err)
	at, ok := m.Ptr()
	require.True(r.t, ok)
	x, err := gpu.MemOf[int32](r.d, at, n)
	require.NoError(r.t, err)
	return m, x
}

// TestProductWindow: all ranks make windows, calls on them are right, each is released once, or by Close; the memory outlives the
// Comm.
func TestProductWindow(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		fake := fakeOf(t, name)
		for _, job := range jobs {
			t.Run(job.name, func(t *testing.T) {
				before, broken := fake.Windows(), fake.Violations()
				ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
					r := begin(t, c, rt)
					m, x := r.make(4096)
					b := ccl.BufOfMemory(m)
					low, high := b.From(0, 1024), b.From(1024, 4096)
					whole, err := c.Window(t.Context(), high)
					require.NoError(t, err)
					part, err := c.Window(t.Context(), low)
					assert.NoError(t, err)
					none, err := c.Window(t.Context(), b.From(1024, 1024))
					assert.NoError(t, err)
					v := make([]int32, 4096)
					for i := range v {
						v[i] = int32(i * (c.Rank() + 1))
					}
					assert.NoError(t, x.Put(v))
					r.q.AllReduce(low, ccl.InPlace(), ccl.Sum)
					got := r.ends(r.q.AllReduce(high, ccl.InPlace(), ccl.Sum), x)
					for i := range got {
						if got[i] != int32(6*i) {
							t.Fatalf("element %d is %d", i, got[i])
						}
					}
					assert.ErrorContains(t, ccl.FreeDevice(m), "the memory has 2 windows or registrations: first release")
					assert.NoError(t, none())
					assert.NoError(t, part())
					assert.NoError(t, part())
					if c.Rank() == 1 { // locally
						assert.NoError(t, whole())
					}
					assert.NoError(t, ccl.Barrier(t.Context(), c))
					assert.NoError(t, c.Close())
					assert.NoError(t, whole())
					assert.NoError(t, ccl.FreeDevice(m))
					err = ccl.FreeDevice(m)
					assert.ErrorIs(t, err, ccl.ErrArgument)
					assert.ErrorContains(t, err, "the device memory was freed before")
					_, ok := m.Ptr()
					assert.False(t, ok)
				}, append(job.opts, ccltest.With(ccl.Options{Backend: name}))...)
				require.Equal(t, before, fake.Windows())
				require.Equal(t, broken, fake.Violations())
			})
		}
	})
}

// TestProductWindowRefused: what one rank gives wrongly, and a library that makes no window on one, is the same error of all ranks,
// which names that rank; nobody waits in the library, and the Comm goes on.
func TestProductWindowRefused(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		fake := fakeOf(t, name)
		before, broken := fake.Windows(), fake.Violations()
		over := func(ctx context.Context, r *on, b ccl.Buf, code ccl.Code, text string) {
			_, err := r.c.Window(ctx, b)
			require.ErrorIs(t, err, code)
			require.ErrorContains(t, err, text)
			require.NoError(t, r.sums(ctx, 1))
		}
		well(t, 3, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
			m, _ := r.make(4096)
			b := ccl.BufOfMemory(m)
			if r.me == 2 {
				b = b.From(0, 2048)
			}
			over(ctx, r, b, ccl.ErrArgument, "Window: a window has one size on all ranks: rank 0 has 16384 bytes, rank 2 has 8192")
			b = ccl.BufOfMemory(m).From(0, 1024)
			if r.me == 1 {
				b = ccl.BufOfMemory(m).From(1, 1025)
			}
			over(ctx, r, b, ccl.ErrArgument, "Window: on rank 1: the memory begins at 0x")
			b = ccl.BufOfMemory(m)
			if r.me == 0 {
				b = ccl.BufOfMemory(r.mem(make([]int32, 4096)...))
			}
			over(ctx, r, b, ccl.ErrArgument, "Window: on rank 0: a window needs memory from MakeDevice, not a *"+rt.Package+".Mem")
			freed, _ := r.make(4096)
			require.NoError(t, ccl.FreeDevice(freed))
			over(ctx, r, ccl.BufOfMemory(freed), ccl.ErrArgument, "Window: on rank 0: the device memory was freed")
			r.windowsOverlap(ctx, m, over)
		})
		t.Setenv("FAKE_NCCL_WINDOW", "none")
		t.Setenv("FAKE_NCCL_RANK", "1")
		well(t, 3, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
			m, _ := r.make(4096)
			over(ctx, r, ccl.BufOfMemory(m), ccl.ErrUnsupported, "makes no symmetric window on rank 1: the devices of all ranks must be able to map")
			require.NoError(t, ccl.FreeDevice(m))
		})
		require.Equal(t, before, fake.Windows())
		require.Equal(t, broken, fake.Violations())
	})
}

// windowsOverlap is one memory in two windows, the whole of it or a part, on all ranks or on one.
func (r *on) windowsOverlap(ctx context.Context, m ccl.Memory[int32], over func(context.Context, *on, ccl.Buf, ccl.Code, string)) {
	b := ccl.BufOfMemory(m)
	first, err := r.c.Window(ctx, b.From(1024, 3072))
	require.NoError(r.t, err)
	for _, again := range []ccl.Buf{b.From(1024, 3072), b.From(2048, 3072), b.From(2048, 4096), b.From(0, 2048), b} {
		over(ctx, r, again, ccl.ErrArgument, "Window: on rank 0: ")
	}
	other, _ := r.make(2048)
	on := ccl.BufOfMemory(other)
	if r.me == 2 {
		on = b.From(2048, 4096)
	}
	over(ctx, r, on, ccl.ErrArgument, "Window: on rank 2: 8192 bytes at 0x")
	if r.me == 2 { // which is one then, and the others' memory is free as well
		require.NoError(r.t, first())
	}
	second, err := r.c.Window(ctx, on)
	require.NoError(r.t, err)
	require.NoError(r.t, errors.Join(first(), second()))
	require.NoError(r.t, ccl.Barrier(ctx, r.c))
	require.NoError(r.t, errors.Join(ccl.FreeDevice(m), ccl.FreeDevice(other)))
}

// TestProductWindowFails: a library that fails on one rank, a rank that makes another call, one that does not come, and a context that
// ends: an error on every rank in bounded time.
func TestProductWindowFails(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		for _, tc := range []struct {
			name string
			fail string // FAKE_FAIL
			code ccl.Code
			call func(ctx context.Context, r *on, m ccl.Memory[int32]) error
		}{
			{"the library on one rank", "ncclCommWindowRegister:2:1", ccl.ErrBackend, nil},
			{"and no call comes back", "ncclCommWindowRegister:2:1,ncclCommRevoke:0:3", ccl.ErrBackend, nil},
			{"a context that ends", "", ccl.ErrTimeout, func(ctx context.Context, r *on, m ccl.Memory[int32]) error {
				if r.me == 0 {
					<-r.c.Done()
					return r.c.Err()
				}
				short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
				defer cancel()
				_, err := r.c.Window(short, ccl.BufOfMemory(m))
				return err
			}},
			{"another call", "", ccl.ErrMismatch, func(ctx context.Context, r *on, m ccl.Memory[int32]) error {
				// All have made their memory: a rank that has failed before could not.
				if err := ccl.Barrier(ctx, r.c); err != nil {
					return err
				}
				if r.me == 0 {
					_, err := r.c.Split(ctx, 0, 0)
					return err
				}
				_, err := r.c.Window(ctx, ccl.BufOfMemory(m))
				return err
			}},
			{"a rank that does not come", "", ccl.ErrTimeout, func(ctx context.Context, r *on, m ccl.Memory[int32]) error {
				if r.me == 0 {
					<-r.c.Done()
					return r.c.Err()
				}
				_, err := r.c.Window(ctx, ccl.BufOfMemory(m))
				return err
			}},
		} {
			t.Run(tc.name, func(t *testing.T) {
				if tc.fail == "" || tc.fail == "ncclCommWindowRegister:2:1" {
					leaves(t, name)
				}
				if tc.fail != "" {
					t.Setenv("FAKE_FAIL", tc.fail+","+name+":1:1")
				}
				start := time.Now()
				for rank, err := range job(t, 3, ccl.Options{Backend: name, Timeout: 2 * time.Second}, rt, func(ctx context.Context, r *on) error {
					m, _ := r.make(4096)
					call := tc.call
					if call == nil {
						call = func(ctx context.Context, r *on, m ccl.Memory[int32]) error {
							_, err := r.c.Window(ctx, ccl.BufOfMemory(m))
							return err
						}
					}
					err := call(ctx, r, m)
					r.c.Close()
					if ccl.FreeDevice(m) != nil {
						return errors.New("the memory cannot be freed")
					}
					return err
				}) {
					e := failure(t, rank, err, tc.code)
					if tc.fail != "" {
						assert.Contains(t, e.Error(), "ncclCommWindowRegister", "rank %d", rank)
					}
				}
				assert.Less(t, time.Since(start), soon)
			})
		}
	})
}

// TestProductMakeDevice: what cannot be made is an error that says why.
func TestProductMakeDevice(t *testing.T) {
	wellOnEach(t, 1, ccl.Options{}, func(ctx context.Context, t *testing.T, r *on) {
		_, err := ccl.MakeDevice[int64](ctx, r.c, -1)
		assert.ErrorIs(t, err, ccl.ErrArgument)
		_, err = ccl.MakeDevice[int64](ctx, r.c, 1<<40)
		assert.ErrorIs(t, err, ccl.ErrBackend)
		assert.ErrorContains(t, err, "8796093022208 bytes on device 0: ")
		assert.ErrorContains(t, err, "out of memory")
		none, err := ccl.MakeDevice[int64](ctx, r.c, 0)
		assert.NoError(t, err)
		assert.Zero(t, none.Len())
		assert.NoError(t, ccl.FreeDevice(none))
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = ccl.MakeDevice[int64](ended, r.c, 1)
		assert.ErrorIs(t, err, ccl.ErrCanceled)
		m, x := r.make(1)
		at, _ := m.Ptr()
		assert.ErrorContains(t, x.Put(make([]int32, 2)), "but the memory has 1")
		assert.NoError(t, ccl.FreeDevice(m))
		assert.Error(t, r.d.Owns(at))
		r.c.Close()
		_, err = ccl.MakeDevice[int64](ctx, r.c, 1)
		assert.ErrorIs(t, err, ccl.ErrClosed)
	})
}

// TestProductDeviceMemory: what the library says that a Comm costs on its device, or why it does
// not.
func TestProductDeviceMemory(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		well(t, 2, ccl.Options{Backend: name}, rt, func(_ context.Context, r *on) {
			n, err := ccl.DeviceMemory(r.c)
			require.NoError(t, err)
			require.EqualValues(t, 2<<20, n)
			r.c.Close()
			_, err = ccl.DeviceMemory(r.c)
			assert.ErrorIs(r.t, err, ccl.ErrClosed)
		})
		t.Setenv("FAKE_FAIL", "ncclCommMemStats:0:3")
		for rank, err := range job(t, 2, ccl.Options{Backend: name}, rt, func(_ context.Context, r *on) error {
			_, err := ccl.DeviceMemory(r.c)
			return err
		}) {
			assert.Contains(t, failure(t, rank, err, ccl.ErrBackend).Error(), "ncclCommMemStats", "rank %d", rank)
		}
	})
}
