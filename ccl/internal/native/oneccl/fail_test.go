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
	roles["open"] = func(r *rank) error { fmt.Println(r.lib.Version); return nil }
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

// want fails unless err contains text.
func want(err error, text string) error {
	if err == nil || !strings.Contains(err.Error(), text) {
		return fmt.Errorf("the error is %v; it should contain %q", err, text)
	}
	return nil
}

// prompt fails if what follows a failure takes longer than ten times what is promised: 100 ms.
func prompt(since time.Time) error {
	if d := time.Since(since); d > time.Second {
		return fmt.Errorf("that took %v", d)
	}
	return nil
}

// The last rank is killed while the others wait for it, and Abort, which ccl calls then, lets them go.
func killed(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
	if err := errors.Join(r.sum(r.ctx, e, r.Size()), r.barrier()); err != nil {
		return err
	}
	if r.Rank() == r.Size()-1 {
		fmt.Println("dying")
		return syscall.Kill(os.Getpid(), syscall.SIGKILL)
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
	err = r.sum(r.ctx, e, r.Size())
	if err := errors.Join(want(err, "abandoned"), prompt(aborted)); err != nil {
		return err
	}
	began := time.Now()
	if err := errors.Join(want(r.sum(r.ctx, e, r.Size()), "aborted"), e.Close()); err != nil {
		return err
	}
	_, err = r.lib.New(r.ctx, engine.Group{Size: 1, Device: -1, Locals: 1}, make([]byte, 4096))
	if err := errors.Join(want(err, "still inside oneCCL"), prompt(began)); err != nil {
		return err
	}
	fmt.Println("survived")
	return nil
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
func canceled(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
	if r.Rank() == 0 {
		ctx, cancel := context.WithTimeout(r.ctx, 100*time.Millisecond)
		defer cancel()
		err := r.sum(ctx, e, r.Size())
		if !errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("the error is %v", err)
		}
	}
	return r.barrier()
}

func TestCanceled(t *testing.T) { ranks(t, "canceled", 2) }

// A rank whose peers do not come is let go by its context, and by Check.
func alone(r *rank) error {
	id, err := r.lib.ID()
	if err != nil {
		return err
	}
	lost := errors.New("rank 1 is lost")
	began := time.Now()
	_, err = r.lib.New(r.ctx, engine.Group{Size: 2, Device: -1, Locals: 2, Check: func() error {
		if time.Since(began) > 100*time.Millisecond {
			return lost
		}
		return nil
	}}, id)
	if !errors.Is(err, lost) {
		return fmt.Errorf("the error is %v", err)
	}
	return nil
}

func TestStartAlone(t *testing.T) { ranks(t, "alone", 1) }

// Two ranks in one process would hang: both get an error.
func twice(r *rank) error {
	id, err := r.lib.ID()
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, 2)
	for i := range errs {
		all.Go(func() {
			_, errs[i] = r.lib.New(r.ctx, engine.Group{Rank: i, Size: 2, Device: -1, Local: i, Locals: 2}, id)
		})
	}
	all.Wait()
	return errors.Join(want(errs[0], "one per process"), want(errs[1], "one per process"))
}

func TestTwoRanksInAProcess(t *testing.T) { ranks(t, "twice", 1) }

// Go's signal handlers are in force after oneCCL and all that it draws in have been used.
func nilDereference(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
	if err := r.sum(r.ctx, e, r.Size()); err != nil {
		return err
	}
	recovered := make(chan any)
	for range 8 {
		go func() {
			defer func() { recovered <- recover() }()
			var p *int
			*p = 1
		}()
	}
	for range 8 {
		if p, ok := (<-recovered).(error); !ok || !strings.Contains(p.Error(), "nil pointer dereference") {
			return fmt.Errorf("recovered %v", p)
		}
	}
	return errors.Join(r.sum(r.ctx, e, r.Size()), r.barrier(), e.Close())
}

func TestNilDereference(t *testing.T) {
	ranks(t, "nil", 2)
	// Even where nothing keeps libinfinipath, which Debian's libfabric draws in, from taking SIGSEGV.
	ranks(t, "nil", 2, "IPATH_NO_BACKTRACE=")
}

// A rank may close before the others.
func early(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
	if err := r.sum(r.ctx, e, r.Size()); err != nil {
		return err
	}
	if r.Rank() != 0 {
		if err := r.barrier(); err != nil {
			return err
		}
		return errors.Join(e.Close(), e.Close())
	}
	began := time.Now()
	return errors.Join(e.Close(), e.Close(), prompt(began), want(r.sum(r.ctx, e, r.Size()), "aborted"), r.barrier())
}

func TestCloseEarly(t *testing.T) { ranks(t, "early", 2) }

// Several communicators, of all and of a part of the ranks, in one process.
func several(r *rank) error {
	var all []engine.Engine
	for range 3 {
		e, err := r.join()
		if err != nil {
			return err
		}
		all = append(all, e)
	}
	var wait sync.WaitGroup
	errs := make([]error, len(all))
	for range 20 {
		for i, e := range all { // from goroutines that come and go, in the one order that all ranks have
			wait.Go(func() { errs[i] = errors.Join(errs[i], r.sum(r.ctx, e, r.Size())) })
			wait.Wait()
		}
	}
	for _, e := range all {
		errs = append(errs, e.Close())
	}
	// What was closed on all ranks is destroyed when the next one is made.
	var open [2]int
	for i := range open {
		for range 12 {
			e, err := r.join()
			if err != nil {
				return err
			}
			errs = append(errs, r.sum(r.ctx, e, r.Size()), e.Close())
		}
		files, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return err
		}
		open[i] = len(files)
	}
	if open[1] > open[0] {
		errs = append(errs, fmt.Errorf("descriptors are left behind: %d, then %d", open[0], open[1]))
	}
	return errors.Join(errs...)
}

func TestSeveralCommunicators(t *testing.T) { ranks(t, "several", 2) }

// What would crash oneCCL, or hang it, is refused before it is called.
func arguments(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
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
	return errors.Join(
		want(run(op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Count: 1}, DstAt: p}}), "onecclAllReduce: a null address"),
		want(run(op.Call{Head: op.Head{Record: op.Record{Kind: op.Broadcast, Type: op.Int32, Count: 1, Root: -1}, DstAt: p}}), "onecclBroadcast: rank -1; the ranks are 0 to 0"),
		want(run(op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Type: op.Int32, Count: 1, Root: 1}, DstAt: p, SrcAt: p}}), "onecclReduce: rank 1; the ranks are 0 to 0"),
		want(run(op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int16, Count: 1}, DstAt: p, SrcAt: p}}), "oneCCL moves int16, but does not reduce it"),
		want(issue(p), "it takes only host memory"),
		want(issue(0), "need a queue"),
		want(shortID, "4096 bytes, not 128"),
		want(badRank, "rank 2 of 2"),
		want(noRanks, "rank 0 of 0"),
		want(device, "CPU plugin"),
		want(wanted, "oneccl: device 3 was asked for, but there is none: "),
		r.sum(r.ctx, e, 1),
		e.Close(),
	)
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
func allocs(r *rank) error {
	e, err := r.join()
	if err != nil {
		return err
	}
	x := numbers(4)
	p := uintptr(unsafe.Pointer(&x[0]))
	calls := []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Count: 4, Root: -1}, DstAt: p, SrcAt: p}}}
	ctx := context.Background()
	n := testing.AllocsPerRun(200, func() {
		if e := e.Run(ctx, calls); e != nil {
			err = e
		}
	})
	if n > 0 {
		return fmt.Errorf("%v allocations per call", n)
	}
	runtime.KeepAlive(x)
	return errors.Join(err, e.Close())
}

func TestAllocs(t *testing.T) { ranks(t, "allocs", 2) }
