//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/fake"
)

// TestProductFP8: a device before compute capability 9.0 reduces no 8-bit floats, which Supports
// says on all ranks before a call; they are moved as bytes, which NCCL refuses as floats up to
// 2.27.
func TestProductFP8(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		t.Setenv("FAKE_CC", "80")
		for _, version := range []string{"22703", "23102"} { // as the library in C has it; goccl asks once in a process
			t.Setenv("FAKE_NCCL_VERSION", version)
			well(t, 2, ccl.Options{Backend: name}, rt, func(ctx context.Context, r *on) {
				err := r.c.Supports(ccl.KindAllReduce, ccl.TypeFloat8E4M3, ccl.Sum)
				if name == "rccl" {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, ccl.ErrUnsupported)
				require.ErrorContains(t, err, "that needs compute capability 9.0, and one has 8.0")
				require.NoError(t, r.c.Supports(ccl.KindBroadcast, ccl.TypeFloat8E4M3, ccl.Sum))
				x, err := gpu.Alloc[ccl.Float8E4M3](r.d, 2)
				require.NoError(t, err)
				defer x.Free()
				require.NoError(t, x.Put([]ccl.Float8E4M3{ccl.Float8E4M3(0x38 + r.me), ccl.Float8E4M3(0x40 + r.me)}))
				for _, w := range []ccl.Work{
					r.q.Broadcast(ccl.BufOfMemory(x), 1), r.q.AllGather(ccl.BufOfMemory(x), ccl.BufOfMemory(x).From(r.me, r.me+1)),
					r.q.SendRecv(ccl.BufOfMemory(x).From(0, 1), 1-r.me, ccl.BufOfMemory(x).From(1, 2), 1-r.me),
				} {
					require.NoError(t, w.Wait(ctx), "NCCL %s", version)
				}
				got := make([]ccl.Float8E4M3, 2)
				require.NoError(t, x.Get(got))
				require.Equal(t, []ccl.Float8E4M3{0x41, 0x41}, got)
			})
		}
	})
}

// TestProductAlone: a rank alone copies where it would send to itself, in place and not: RCCL
// 2.27.7 to 2.28.3 hangs in an all-to-all of one rank.
func TestProductAlone(t *testing.T) {
	wellOnEach(t, 1, ccl.Options{Timeout: soon}, func(_ context.Context, t *testing.T, r *on) {
		x, y := r.mem(1, 2, 3), r.mem(0, 0, 0)
		dx, dy := ccl.BufOfMemory(x), ccl.BufOfMemory(y)
		assert.Equal(r.t, []int32{1, 2, 3}, r.ends(r.q.AllToAll(dy, dx), y))
		assert.Equal(r.t, []int32{1, 2, 3}, r.ends(r.q.AllToAll(dx, ccl.InPlace()), x))
		assert.NoError(r.t, x.Put([]int32{4, 5, 6}))
		assert.Equal(r.t, []int32{4, 5, 3}, r.ends(r.q.AllToAllV(dy.From(0, 2), []int{2}, dx.From(0, 2), []int{2}), y))
		assert.Equal(r.t, []int32{4, 6, 3}, r.ends(r.q.SendRecv(dy.From(1, 2), 0, dx.From(2, 3), 0), y))
	})
}

// mallocAsync says whose MallocAsync a process of TestProductRefused has; the others are those of
// TestMain.
const mallocAsync, driverVariable = "NATIVE_TEST_MALLOC_ASYNC", "NATIVE_TEST_DRIVER"

// TestProductRefused: where the device runtime has no MallocAsync, SupportsInPlace says which calls
// need a second buffer; with one they are made. Without, they do not get as far as the library: all
// ranks have an error that says which call it was, and what to do. With the driver in the runtime's
// place there is one.
func TestProductRefused(t *testing.T) {
	if os.Getenv(mallocAsync) == "" {
		dir := t.TempDir()
		without, err := fake.Build(dir, "cudaMallocAsync", "cudaFreeAsync", "hipMallocAsync", "hipFreeAsync")
		require.NoError(t, err)
		whole := os.Getenv(libraryOf["nccl"]) // the one that is loaded: its runtime is the driver's
		driver := filepath.Join(dir, "libcuda.so.1")
		out, err := exec.Command("cc", "-std=gnu11", "-fPIC", "-shared", "-o", driver, "../../../gpu/testdata/libcuda.c",
			whole, "-Wl,-rpath,"+filepath.Dir(whole)).CombinedOutput()
		require.NoError(t, err, string(out))
		for name, library := range map[string]string{"none": libraryVariable + "=" + without, "driver": driverVariable + "=" + driver} {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run", "^TestProductRefused$")
			cmd.Env = append(os.Environ(), mallocAsync+"="+name, library)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s: %s", name, out)
			require.Contains(t, string(out), "--- PASS: TestProductRefused/")
		}
		return
	}
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		works, dev := os.Getenv(mallocAsync) == "driver", ccl.BufOfMemory[int32]
		for kind, call := range map[ccl.Kind]func(r *on, dst, src ccl.Buf) ccl.Work{
			ccl.KindAllToAll:  func(r *on, dst, src ccl.Buf) ccl.Work { return r.q.AllToAll(dst, src) },
			ccl.KindAllToAllV: func(r *on, dst, src ccl.Buf) ccl.Work { return r.q.AllToAllV(dst, []int{1, 1}, src, []int{1, 1}) },
			ccl.KindSendRecv:  func(r *on, dst, src ccl.Buf) ccl.Work { return r.q.SendRecv(dst, 1-r.me, src, 1-r.me) },
		} {
			var first sync.WaitGroup
			first.Add(2)
			for rank, err := range job(t, 2, ccl.Options{Backend: name, Timeout: soon}, rt, func(ctx context.Context, r *on) error {
				ready := sync.OnceFunc(first.Done)
				defer ready()
				x, y := r.mem(int32(10*r.me), int32(10*r.me+1)), r.mem(0, 0)
				result := []int32{int32(r.me), int32(10 + r.me)}
				if kind == ccl.KindSendRecv { // what the other had
					result = []int32{int32(10 * (1 - r.me)), int32(10*(1-r.me) + 1)}
				}
				assert.NoError(r.t, r.c.Supports(kind, ccl.TypeInt32, ccl.Sum))
				assert.NoError(r.t, ccl.SupportsInPlace(r.c, ccl.KindAllReduce))
				assert.Equal(r.t, result, r.ends(call(r, dev(y), dev(x)), y), "%v with two buffers", kind)
				if err := ccl.SupportsInPlace(r.c, kind); !works {
					assert.ErrorIs(r.t, err, ccl.ErrUnsupported)
					assert.ErrorContains(r.t, err, "use a second buffer: in place it needs")
				} else {
					assert.NoError(r.t, err)
				}
				ready()
				first.Wait() // a rank that still waits for the first call would hear of the second
				err := call(r, dev(x), dev(x)).Wait(ctx)
				if got := make([]int32, 2); works && x.Get(got) == nil {
					assert.Equal(r.t, result, got, "%v in place", kind)
				}
				return err
			}) {
				if works {
					assert.NoError(t, err, "%v, rank %d", kind, rank)
					continue
				}
				var e *ccl.Error
				if assert.ErrorAs(t, err, &e, "%v, rank %d", kind, rank) {
					assert.Contains(t, []ccl.Code{ccl.ErrUnsupported, ccl.ErrMismatch}, e.Code, "%v, rank %d: the other may be first", kind, rank)
					assert.Contains(t, e.Error(), kind.String()+": use a second buffer: in place it needs", "%v, rank %d", kind, rank)
					if e.Code == ccl.ErrUnsupported {
						assert.Contains(t, e.Error(), "int32 x ", "%v, rank %d", kind, rank)
					}
				}
			}
		}
	})
}

// TestProductRefusedByLibrary: the error of a call that the library itself refuses says on each rank which call it was, with its
// length, and what the library has said.
func TestProductRefusedByLibrary(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		knobRuns++
		t.Setenv("FAKE_FAIL", fmt.Sprintf("ncclAllGather:0:4,run%d:1:1", knobRuns))
		for rank, err := range job(t, 2, ccl.Options{Backend: name, Timeout: soon}, rt, func(ctx context.Context, r *on) error {
			x, y := r.mem(0, 0, 0, 0, 0, 0), r.mem(1, 2, 3)
			return r.q.AllGather(ccl.BufOfMemory(x), ccl.BufOfMemory(y)).Wait(ctx)
		}) {
			e := failure(t, rank, err, ccl.ErrBackend)
			assert.Contains(t, e.Error(), "AllGather #1 int32 x 3: ", "rank %d", rank)
			assert.Contains(t, e.Error(), "ncclAllGather: ", "rank %d", rank)
		}
	})
}
