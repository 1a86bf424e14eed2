//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestCopyOn(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		const n = 10_000
		s := stream(t, d)
		in, out := host[int32](t, d, n), host[int32](t, d, n)
		require.Equal(t, n, in.Len())
		copy(in.Slice(), ramp(n, 5))
		x, y := alloc[int32](t, d, n), alloc[int32](t, d, n)
		require.NoError(t, x.PutOn(s, in))
		require.NoError(t, y.SetOn(s, 0))
		require.NoError(t, y.CopyOn(s, x))
		require.NoError(t, y.GetOn(s, out))
		require.NoError(t, s.Synchronize())
		require.Equal(t, ramp(n, 5), out.Slice())

		half, err := out.Part(n/2, n)
		require.NoError(t, err)
		require.NoError(t, y.GetOn(s, half)) // the start of y to the end of out
		require.NoError(t, s.Synchronize())
		require.Equal(t, append(ramp(n/2, 5), ramp(n/2, 5)...), out.Slice())
	})
}

func TestCopyBetweenDevices(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		all, err := rt.Devices()
		require.NoError(t, err)
		if len(all) < 2 {
			t.Skip("hardware: one device")
		}
		x, y := alloc[int32](t, all[0], 100), alloc[int32](t, all[1], 100)
		require.NoError(t, x.Put(ramp(100, 1)))
		s := stream(t, all[1])
		require.NoError(t, y.CopyOn(s, x))
		require.NoError(t, s.Synchronize())
		got := make([]int32, 100)
		require.NoError(t, y.Get(got))
		require.Equal(t, ramp(100, 1), got)
	})
}

func TestCopyRefused(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		s := stream(t, d)
		small, large := alloc[int32](t, d, 3), alloc[int32](t, d, 4)
		h := host[int32](t, d, 4)
		require.EqualError(t, small.CopyOn(s, large), pkg+": CopyOn of 4 elements, but the memory has 3")
		require.EqualError(t, small.PutOn(s, h), pkg+": PutOn of 4 elements, but the memory has 3")
		require.EqualError(t, small.GetOn(s, h), pkg+": GetOn of 4 elements, but the memory has 3")
		require.ErrorIs(t, large.CopyOn(s, nil), gpu.ErrClosed)
		require.ErrorIs(t, large.CopyOn(nil, small), gpu.ErrClosed)
		require.ErrorIs(t, large.PutOn(s, &gputest.Host[int32]{}), gpu.ErrClosed)
		require.NoError(t, s.Close())
		require.ErrorIs(t, large.CopyOn(s, small), gpu.ErrClosed)
	})
}

func TestHostFreed(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		h, err := gpu.AllocHost[float64](d, 2)
		require.NoError(t, err)
		part, err := h.Part(0, 1)
		require.NoError(t, err)
		require.ErrorContains(t, part.Free(), "only whole memory can be freed")
		require.NoError(t, h.Free())
		require.Nil(t, h.Slice())
		require.Nil(t, part.Slice())
		require.ErrorIs(t, h.Free(), gpu.ErrClosed)
		_, err = h.Part(0, 1)
		require.ErrorIs(t, err, gpu.ErrClosed)
		require.ErrorIs(t, alloc[float64](t, d, 2).PutOn(stream(t, d), h), gpu.ErrClosed)
	})
}
