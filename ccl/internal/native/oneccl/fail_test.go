//go:build oneccl && cgo && linux

package oneccl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/native/oneccl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	"github.com/stretchr/testify/require"
)

func init() {
	roles["killed"] = killed
	roles["canceled"] = canceled
	roles["alone"] = alone
	roles["nil"] = nilDereference
	roles["early"] = early
	roles["twice"] = twice
	roles["arguments"] = arguments
	roles["several"] = several
	roles["open"] = func(r *rank) { fmt.Println(r.lib.Version) }
	roles["allocs"] = allocs
}

// numbers are on the heap. An address does not keep memory there, and stacks move.
//
//go:noinline
func numbers(n int) []int32 { return make([]int32, n) }

// sum is an AllReduce of one number, whose sum it checks.
func (r *rank) sum(ctx context.Context, e engine.Engine, size int) error {
	x := numbers(1)
	x[0] = 1
	p := uintptr(unsafe.Pointer(&x[0]))
	err := e.Run(ctx, []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Count: 1, Root: -1}, DstAt: p, SrcAt: p}}})
	runtime.KeepAlive(x)
	if err == nil && x[0] != int32(size) {
		err = fmt.Errorf("rank %d: the sum of %d ones is %d", r.Rank(), size, x[0])
	}
	return err
}

// prompt fails if what follows a failure takes longer than ten times what is promised: 100 ms.
func (r *rank) prompt(since time.Time) { require.Less(r, time.Since(since), time.Second) }

// The last rank is killed while the others wait for it, and Abort, which ccl calls then, lets them go.
func killed(r *rank) {
	e := r.join()
	require.NoError(r, r.sum(r.ctx, e, r.Size()))
	r.barrier()
	if r.Rank() == r.Size()-1 {
		fmt.Println("dying")
		require.NoError(r, syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	started := make(chan struct{})
	var aborted time.Time
	go func() {
		<-started
		time.Sleep(200 * time.Millisecond) // into the call; how long does not matter to what follows
		aborted = time.Now()
		e.Abort()
	}()
	close(started)
	require.ErrorContains(r, r.sum(r.ctx, e, r.Size()), "abandoned")
	r.prompt(aborted)
	began := time.Now()
	require.ErrorContains(r, r.sum(r.ctx, e, r.Size()), "aborted")
	require.NoError(r, e.Close())
	_, err := r.lib.New(r.ctx, engine.Group{Size: 1, Device: -1, Locals: 1}, make([]byte, 4096))
	require.ErrorContains(r, err, "still inside oneCCL")
	r.prompt(began)
	fmt.Println("survived")
}

// exit code 0 is for the ranks that are left; Spawn's verdict is about the one that was killed.
func TestKilledPeer(t *testing.T) {
	for _, n := range []int{2, 3} {
		need(t)
		out, err := runOn(t, "killed", n)
		require.ErrorContains(t, err, "killed", "%s", out)
		require.Equal(t, n-1, strings.Count(out, "survived"), "%s", out)
	}
}

// A context ends a call, too.
func canceled(r *rank) {
	e := r.join()
	if r.Rank() == 0 {
		ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(r, r.sum(ctx, e, r.Size()), context.DeadlineExceeded)
	}
	r.barrier()
}

func TestCanceled(t *testing.T) { ranks(t, "canceled", 2) }

// A rank whose peers do not come is let go by its context, and by Check.
func alone(r *rank) {
	id, err := r.lib.ID()
	require.NoError(r, err)
	lost := errors.New("rank 1 is lost")
	began := time.Now()
	_, err = r.lib.New(r.ctx, engine.Group{Size: 2, Device: -1, Locals: 2, Check: func() error {
		if time.Since(began) > 100*time.Millisecond {
			return lost
		}
		return nil
	}}, id)
	require.ErrorIs(r, err, lost)
}

func TestStartAlone(t *testing.T) { ranks(t, "alone", 1) }

// Two ranks in one process would hang: both get an error.
func twice(r *rank) {
	id, err := r.lib.ID()
	require.NoError(r, err)
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			_, err := r.lib.New(r.ctx, engine.Group{Rank: i, Size: 2, Device: -1, Local: i, Locals: 2}, id)
			require.ErrorContains(r, err, "one per process")
		})
	}
	all.Wait()
}

func TestTwoRanksInAProcess(t *testing.T) { ranks(t, "twice", 1) }

// Go's signal handlers are in force after oneCCL and all that it draws in have been used.
func nilDereference(r *rank) {
	e := r.join()
	require.NoError(r, r.sum(r.ctx, e, r.Size()))
	recovered := make(chan any)
	for range 8 {
		go func() {
			defer func() { recovered <- recover() }()
			var p *int
			*p = 1
		}()
	}
	for range 8 {
		require.Contains(r, fmt.Sprint(<-recovered), "nil pointer dereference")
	}
	require.NoError(r, r.sum(r.ctx, e, r.Size()))
	r.barrier()
	require.NoError(r, e.Close())
}

func TestNilDereference(t *testing.T) {
	ranks(t, "nil", 2)
	// Even where nothing keeps libinfinipath, which Debian's libfabric draws in, from taking SIGSEGV.
	ranks(t, "nil", 2, "IPATH_NO_BACKTRACE=")
}

// A rank may close before the others.
func early(r *rank) {
	e := r.join()
	require.NoError(r, r.sum(r.ctx, e, r.Size()))
	if r.Rank() != 0 {
		r.barrier()
	}
	began := time.Now()
	require.NoError(r, errors.Join(e.Close(), e.Close()))
	if r.Rank() == 0 {
		r.prompt(began)
		require.ErrorContains(r, r.sum(r.ctx, e, r.Size()), "aborted")
		r.barrier()
	}
}

func TestCloseEarly(t *testing.T) { ranks(t, "early", 2) }

// Several communicators, of all and of a part of the ranks, in one process.
func several(r *rank) {
	var all []engine.Engine
	for range 3 {
		all = append(all, r.join())
	}
	var wait sync.WaitGroup
	for range 20 {
		for _, e := range all { // from goroutines that come and go, in the one order that all ranks have
			wait.Go(func() { require.NoError(r, r.sum(r.ctx, e, r.Size())) })
			wait.Wait()
		}
	}
	for _, e := range all {
		require.NoError(r, e.Close())
	}
	// What was closed on all ranks is destroyed when the next one is made.
	var open [2]int
	for i := range open {
		for range 12 {
			e := r.join()
			require.NoError(r, errors.Join(r.sum(r.ctx, e, r.Size()), e.Close()))
		}
		files, err := os.ReadDir("/proc/self/fd")
		require.NoError(r, err)
		open[i] = len(files)
	}
	require.LessOrEqual(r, open[1], open[0], "descriptors are left behind")
}

func TestSeveralCommunicators(t *testing.T) { ranks(t, "several", 2) }

// What would crash oneCCL, or hang it, is refused before it is called.
func arguments(r *rank) {
	e := r.join()
	x := numbers(8)
	p := uintptr(unsafe.Pointer(&x[0]))
	run := func(c op.Call) error { return e.Run(r.ctx, []*op.Call{&c}) }
	issue := func(queue uintptr) error {
		_, err := e.Issue(queue, []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.Barrier}}}}, 0)
		return err
	}
	_, shortID := r.lib.New(r.ctx, engine.Group{Size: 1, Device: -1, Locals: 1}, make([]byte, 128))
	_, badRank := r.lib.New(r.ctx, engine.Group{Rank: 2, Size: 2, Device: -1, Locals: 1}, make([]byte, 4096))
	_, noRanks := r.lib.New(r.ctx, engine.Group{Device: -1}, make([]byte, 4096))
	_, device := r.lib.New(r.ctx, engine.Group{Size: 1, Device: 3}, make([]byte, 4096))
	_, wanted := oneccl.Backend().Choose(3, 0, 1)
	require.ErrorContains(r, run(op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Count: 1}, DstAt: p}}), "onecclAllReduce: a null address")
	require.ErrorContains(r, run(op.Call{Head: op.Head{Record: op.Record{Kind: op.Broadcast, Type: op.Int32, Count: 1, Root: -1}, DstAt: p}}), "onecclBroadcast: rank -1; the ranks are 0 to 0")
	require.ErrorContains(r, run(op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Type: op.Int32, Count: 1, Root: 1}, DstAt: p, SrcAt: p}}), "onecclReduce: rank 1; the ranks are 0 to 0")
	require.ErrorContains(r, run(op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int16, Count: 1}, DstAt: p, SrcAt: p}}), "oneCCL moves int16, but does not reduce it")
	require.ErrorContains(r, issue(p), "it takes only host memory")
	require.ErrorContains(r, issue(0), "need a queue")
	require.ErrorContains(r, shortID, "4096 bytes, not 128")
	require.ErrorContains(r, badRank, "rank 2 of 2")
	require.ErrorContains(r, noRanks, "rank 0 of 0")
	require.ErrorContains(r, device, "CPU plugin")
	require.ErrorContains(r, wanted, "oneccl: device 3 was asked for, but there is none: ")
	require.NoError(r, errors.Join(r.sum(r.ctx, e, 1), e.Close()))
}

func TestArguments(t *testing.T) {
	needCPU(t)
	ranks(t, "arguments", 1)
}

// needCPU skips where oneCCL runs on devices.
func needCPU(t *testing.T) {
	t.Helper()
	need(t)
	if os.Getenv("GOCCL_TEST_DEVICE") != "" {
		t.Skip("hardware: this is about oneCCL's plugin for CPUs; here it runs on a SYCL device")
	}
}

// What is not oneCCL is said to be none, before it could do anything.
func TestWrongLibrary(t *testing.T) {
	need(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "notes.txt")
	require.NoError(t, os.WriteFile(text, []byte("no library\n"), 0o600))
	for _, tc := range []struct{ name, lib, want string }{
		{"libc", "libc.so.6", "is not oneCCL 2021.17 or newer: it has no onecclGetVersion. GOCCL_ONECCL_LIB names oneCCL's libccl.so.2"},
		{"text", text, "oneCCL cannot be loaded: GOCCL_ONECCL_LIB=" + text + ": file too short"},
		{"nothing", dir + "/libccl.so.2", "cannot open shared object file: No such file or directory. To fix this, install oneCCL 2021.17 or newer (libccl.so.2), or set GOCCL_ONECCL_LIB to the library's file"},
		{"NCCL", fake(t, "libnccl.so.2", `int ncclGetVersion(int *v) { *v = 22809; return 0; }`), "it has no onecclGetVersion"},
		{"a symbol is missing", fake(t, "libccl.so.2", `int onecclGetVersion(int *v) { *v = 20211700; return 0; } int onecclGetUniqueId(void *p) { return 0; }`), "it has no onecclGetErrorString"},
		{"too old", fake(t, "old/libccl.so.2", old), "is oneCCL 2021.16.1, which is too old: 2021.17 is the first that goccl can use"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, err := run(t, "open", 1, "GOCCL_ONECCL_LIB="+tc.lib, "CCL_PLUGIN=ONECCL_LEGACY_CPU")
			require.Error(t, err)
			require.Contains(t, out, tc.want)
		})
	}
	t.Run("no plugin", func(t *testing.T) {
		needCPU(t)
		out, err := run(t, "open", 1, "GOCCL_ONECCL_LIB="+fake(t, "bare/libccl.so.2", old))
		require.Error(t, err)
		require.Contains(t, out, "its plugin for CPUs, libccl_legacy_cpu.so, is not beside")
	})
	t.Run("no shim", func(t *testing.T) {
		out, err := run(t, "open", 1, "GOCCL_XPU_LIB=libc.so.6", "CCL_PLUGIN=")
		require.Error(t, err)
		require.Contains(t, out, "is not goccl's SYCL shim: it has no gxpu_abi")
	})
}

// old has all functions of oneCCL, and is an older version.
const old = `
#define F(name) int oneccl##name(void) { return 0; }
int onecclGetVersion(int *v) { *v = 20211601; return 0; }
F(GetUniqueId) F(GetErrorString) F(GetLastError) F(SetDevice) F(CommInitRank) F(CommDestroy) F(AllReduce) F(Reduce)
F(Broadcast) F(ReduceScatter) F(AllGather) F(AllToAll) F(Send) F(Recv)`

// fake compiles a library.
func fake(t *testing.T, name, source string) string {
	t.Helper()
	so := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.MkdirAll(filepath.Dir(so), 0o700))
	require.NoError(t, os.WriteFile(so+".c", []byte(source), 0o600))
	out, err := exec.Command("cc", "-shared", "-fPIC", "-o", so, so+".c").CombinedOutput()
	require.NoError(t, err, "%s", out)
	return so
}

// A call allocates nothing.
func allocs(r *rank) {
	e := r.join()
	x := numbers(4)
	p := uintptr(unsafe.Pointer(&x[0]))
	calls := []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Count: 4, Root: -1}, DstAt: p, SrcAt: p}}}
	ctx := context.Background()
	var err error
	require.Zero(r, testing.AllocsPerRun(200, func() {
		if e := e.Run(ctx, calls); e != nil {
			err = e
		}
	}))
	runtime.KeepAlive(x)
	require.NoError(r, errors.Join(err, e.Close()))
}

func TestAllocs(t *testing.T) { ranks(t, "allocs", 2) }
