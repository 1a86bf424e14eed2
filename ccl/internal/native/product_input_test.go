//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
)

// foreign is memory of another package.
type foreign struct{ *gpu.Mem[int32] }

func (foreign) Platform() string { return "acme" }

// stray is memory whose owner is mistaken about its address.
type stray struct{ *gpu.Mem[int32] }

func (stray) Ptr() (uintptr, bool) { return 0x3039, true }

// TestProductInput: what is wrong with a call is said before the library could see it.
func TestProductInput(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		for what, tc := range map[string]struct {
			call func(r *on, x *gpu.Mem[int32]) ccl.Work
			code ccl.Code
			text string
		}{
			"wrong address, CheckStrict": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				return r.q.AllReduce(ccl.BufOfMemory(x), ccl.BufOfMemory(stray{x}), ccl.Sum)
			}, ccl.ErrBackend, "0x3039"},
			"host memory": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				return r.q.AllReduce(ccl.BufOf([]int32{1}), ccl.InPlace(), ccl.Sum)
			}, ccl.ErrArgument, "host memory where device memory is needed"},
			"freed": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				y, _ := gpu.Alloc[int32](r.d, 2)
				b := ccl.BufOfMemory(y)
				y.Free()
				return r.q.AllReduce(b, ccl.InPlace(), ccl.Sum)
			}, ccl.ErrArgument, "dst: the device memory was freed"},
			"another device": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				d, _ := rt.Device(5)
				y, _ := gpu.Alloc[int32](d, 2)
				defer y.Free()
				return r.q.AllReduce(ccl.BufOfMemory(x), ccl.BufOfMemory(y), ccl.Sum)
			}, ccl.ErrArgument, "src: the memory is on device 5, the Comm on device 0"},
			"another package": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				return r.q.AllReduce(ccl.BufOfMemory(foreign{x}), ccl.InPlace(), ccl.Sum)
			}, ccl.ErrArgument, "the memory is from package acme, but the Comm's backend " + name},
			"too many": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				return r.q.AllReduce(ccl.BufOfMemory(x).From(0, 3), ccl.InPlace(), ccl.Sum)
			}, ccl.ErrArgument, "Buf.From was out of bounds"},
			"lengths": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				return r.q.AllReduce(ccl.BufOfMemory(x), ccl.BufOfMemory(x).From(0, 1), ccl.Sum)
			}, ccl.ErrArgument, "dst must have 1"},
			"closed stream": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				r.s.Close()
				return sumOf(r.q, x)
			}, ccl.ErrArgument, "is closed"},
			"closed stream, new queue": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				r.s.Close()
				return sumOf(r.c.On(r.s), x)
			}, ccl.ErrArgument, "is closed"},
			"stream of another device": {func(r *on, x *gpu.Mem[int32]) ccl.Work {
				d, _ := rt.Device(5)
				s, _ := d.NewStream()
				defer s.Close()
				return sumOf(r.c.On(s), x)
			}, ccl.ErrArgument, "Stream is on device 5, the Comm on device 0"},
			"root": {func(r *on, x *gpu.Mem[int32]) ccl.Work { return r.q.Broadcast(ccl.BufOfMemory(x), 1) },
				ccl.ErrArgument, "root is 1; the ranks are 0 to 0"},
		} {
			t.Run(what, func(t *testing.T) {
				o := ccl.Options{Backend: name}
				if strings.HasSuffix(what, "CheckStrict") {
					o.Check = ccl.CheckStrict
				}
				c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], &o)
				require.NoError(t, err)
				defer c.Close()
				r := begin(t, c, rt)
				err = tc.call(r, r.mem(1, 2)).Wait(t.Context())
				e := failure(t, 0, err, tc.code)
				assert.Contains(t, e.Error(), tc.text)
			})
		}
	})
}
