//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestMem(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		for _, n := range []int{1, 3, 1024, 100_003} {
			x := alloc[int32](t, d, n)
			require.Equal(t, n, x.Len())
			require.Zero(t, x.Device())
			require.Zero(t, x.Elem())
			require.Equal(t, d.Platform(), x.Platform())
			p, ok := x.Ptr()
			require.True(t, ok)
			require.NotZero(t, p)
			require.NoError(t, d.Owns(p))
			require.NoError(t, x.Put(ramp(n, 7)))
			got := make([]int32, n)
			require.NoError(t, x.Get(got))
			require.Equal(t, ramp(n, 7), got)
			require.NoError(t, x.Set(0xFF))
			require.NoError(t, x.Get(got))
			for _, v := range got {
				require.Equal(t, int32(-1), v)
			}
		}
	})
}

func TestMemOfEveryDevice(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		all, err := rt.Devices()
		require.NoError(t, err)
		for i, d := range all {
			x := alloc[float64](t, d, 5)
			require.Equal(t, i, x.Device())
			require.NoError(t, x.Put([]float64{1, 2, 3, 4, 5}))
			got := make([]float64, 3)
			require.NoError(t, x.Get(got))
			require.Equal(t, []float64{1, 2, 3}, got)
		}
	})
}

func TestMemPart(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		x := alloc[uint16](t, d, 10)
		require.NoError(t, x.Put([]uint16{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}))
		y, err := x.Part(2, 8)
		require.NoError(t, err)
		y, err = y.Part(1, 4) // 3, 4, 5
		require.NoError(t, err)
		require.Equal(t, 3, y.Len())
		whole, _ := x.Ptr()
		part, ok := y.Ptr()
		require.True(t, ok)
		require.Equal(t, whole+6, part)
		got := make([]uint16, 3)
		require.NoError(t, y.Get(got))
		require.Equal(t, []uint16{3, 4, 5}, got)
		require.NoError(t, y.Put([]uint16{30, 40}))
		got = make([]uint16, 10)
		require.NoError(t, x.Get(got))
		require.Equal(t, []uint16{0, 1, 2, 30, 40, 5, 6, 7, 8, 9}, got)

		for _, b := range [][2]int{{-1, 2}, {2, 1}, {0, 11}} {
			_, err := x.Part(b[0], b[1])
			require.ErrorContains(t, err, "of memory of 10 elements")
		}
		require.ErrorContains(t, y.Free(), pkg+": only whole memory can be freed, not a part; the whole was made at main_test.go:")
		require.NoError(t, x.Free())
		_, ok = y.Ptr()
		require.False(t, ok, "the whole was freed")
		require.ErrorIs(t, y.Get(got[:1]), gpu.ErrClosed)
	})
}

// MemOf is somebody else's memory: it is read and written, and freeing it leaves it alone.
func TestMemOf(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		x := alloc[int32](t, d, 4)
		p, _ := x.Ptr()
		y, err := gpu.MemOf[int32](d, p+4, 2)
		require.NoError(t, err)
		require.NoError(t, x.Put([]int32{1, 2, 3, 4}))
		got := make([]int32, 2)
		require.NoError(t, y.Get(got))
		require.Equal(t, []int32{2, 3}, got)
		require.NoError(t, y.Free())
		require.ErrorIs(t, y.Free(), gpu.ErrClosed)
		require.ErrorIs(t, y.Get(got), gpu.ErrClosed)
		require.NoError(t, x.Get(make([]int32, 4)))

		_, err = gpu.MemOf[int32](d, 0, 1)
		require.EqualError(t, err, pkg+": "+pkg+":0: 1 elements of 4 bytes at 0x0 is not valid memory")
		_, err = gpu.MemOf[int32](d, p, -1)
		require.ErrorContains(t, err, "-1 elements")
		none, err := gpu.MemOf[int32](d, 0, 0)
		require.NoError(t, err)
		require.NoError(t, none.Put(nil))
		require.NoError(t, none.Free())
	})
}

func TestMemFreed(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		x, err := gpu.Alloc[float32](d, 4)
		require.NoError(t, err)
		require.NoError(t, x.Free())
		_, ok := x.Ptr()
		require.False(t, ok)
		want := `^` + pkg + `: device 0: 16 bytes of device memory, made at mem_test\.go:\d+, was released at mem_test\.go:\d+: closed$`
		for _, err := range []error{x.Free(), x.Put([]float32{1}), x.Get(make([]float32, 1)), x.Set(0), x.SetOn(stream(t, d), 0), x.CopyOn(stream(t, d), x)} {
			require.ErrorIs(t, err, gpu.ErrClosed)
			require.Regexp(t, want, err.Error())
		}
	})
}

func TestMemOfNothing(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		x := alloc[float32](t, d, 0)
		p, ok := x.Ptr()
		require.True(t, ok)
		require.Zero(t, p)
		require.NoError(t, x.Put(nil))
		require.NoError(t, x.Get(nil))
		require.NoError(t, x.Set(1))
		require.NoError(t, x.SetOn(stream(t, d), 1))
		require.NoError(t, x.Free())
		require.ErrorIs(t, x.Free(), gpu.ErrClosed)
	})
	var none *gputest.Mem[int8]
	for _, m := range []*gputest.Mem[int8]{none, {}} {
		_, ok := m.Ptr()
		require.False(t, ok)
		require.Equal(t, -1, m.Device())
		require.Zero(t, m.Len())
		require.Empty(t, m.Platform())
		require.ErrorIs(t, m.Free(), gpu.ErrClosed)
		require.ErrorIs(t, m.Put(nil), gpu.ErrClosed)
		_, err := m.Part(0, 0)
		require.ErrorIs(t, err, gpu.ErrClosed)
	}
}

func TestMemRefused(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		_, err := gpu.Alloc[float32](d, -1)
		require.EqualError(t, err, pkg+": "+pkg+":0: -1 elements of 4 bytes is not a valid size")
		_, err = gpu.Alloc[float64](d, math.MaxInt/4)
		require.ErrorContains(t, err, "is not a valid size")
		x := alloc[int8](t, d, 4)
		require.EqualError(t, x.Put(make([]int8, 5)), pkg+": Put of 5 elements, but the memory has 4")
		require.EqualError(t, x.Get(make([]int8, 5)), pkg+": Get of 5 elements, but the memory has 4")
		_, err = x.Slice()
		require.EqualError(t, err, pkg+": 4 bytes of device memory cannot be read by the host: copy it with Get, or use AllocManaged for memory that both can read")
	})
}

func TestOutOfMemory(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		symbols, pkg := prefix(rt)
		_, total, err := d.Memory()
		require.NoError(t, err)
		_, err = gpu.Alloc[uint8](d, int(total)+1)
		var failure *gpu.Error
		require.ErrorAs(t, err, &failure)
		require.Equal(t, 2, failure.Code)
		require.Equal(t, symbols+"Malloc", failure.Call)
		require.Regexp(t, `^`+pkg+`: device 0: `+symbols+`Malloc: \d+ bytes of device memory, of \d+ that are free of \d+: out of memory \(`, err.Error())
		alloc[uint8](t, d, 1) // and the next one is there again
	})
}

func TestManaged(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		x, err := gpu.AllocManaged[int64](d, 3)
		require.NoError(t, err)
		s, err := x.Slice()
		require.NoError(t, err)
		require.Len(t, s, 3)
		copy(s, []int64{4, 5, 6})
		got := make([]int64, 3)
		require.NoError(t, x.Get(got))
		require.Equal(t, []int64{4, 5, 6}, got)
		part, err := x.Part(1, 3)
		require.NoError(t, err)
		s, err = part.Slice()
		require.NoError(t, err)
		require.Equal(t, []int64{5, 6}, s)
		require.NoError(t, x.Free())
		_, err = x.Slice()
		require.ErrorIs(t, err, gpu.ErrClosed)
	})
}

func TestOwns(t *testing.T) {
	both(t, func(t *testing.T, rt *gputest.Runtime, d gputest.Device) {
		_, pkg := prefix(rt)
		h := host[int8](t, d, 1)
		require.NotEmpty(t, h.Slice())
		all, err := rt.Devices()
		require.NoError(t, err)
		if len(all) > 1 {
			p, _ := alloc[int8](t, all[1], 1).Ptr()
			require.Regexp(t, `^`+pkg+`: `+pkg+`:0: 0x[0-9a-f]+ is memory of `+pkg+`:1$`, d.Owns(p).Error())
		}
		if !gputest.Real() {
			require.EqualError(t, d.Owns(8), pkg+": "+pkg+":0: 0x8 is not an address in device memory")
		}
		x := alloc[int8](t, d, 1)
		p, _ := x.Ptr()
		require.NoError(t, x.Free())
		require.Error(t, d.Owns(p))
	})
}
