//go:build (nccl || rccl) && cgo && linux

package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/native/cside"
	"github.com/goccl/goccl/internal/engine"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/test/fake"
)

// limit is how long anything in a test may take; what should be over in milliseconds is at ten times that.
const limit = 20 * time.Second

// libraryVariable names another build of the fake library, driverVariable a driver in the place of
// CUDA's runtime.
const libraryVariable, driverVariable = "NATIVE_TEST_LIBRARY", "NATIVE_TEST_DRIVER"

// TestMain loads the fake library, before anything could load another, unless GOCCL_REAL=1 asks for the real one.
func TestMain(m *testing.M) {
	if os.Getenv("GOCCL_REAL") != "1" {
		path, err := os.Getenv(libraryVariable), error(nil)
		if path == "" {
			path, err = fake.Path()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "the fake library:", err)
			os.Exit(1)
		}
		os.Setenv("GOCCL_ALLOW_FAKE", "1")
		for _, name := range []string{"GOCCL_NCCL_LIB", "GOCCL_RCCL_LIB", "GOCCL_CUDART_LIB", "GOCCL_HIP_LIB"} {
			os.Setenv(name, path)
		}
		if driver := os.Getenv(driverVariable); driver != "" {
			os.Setenv("GOCCL_CUDART_LIB", driver)
		}
	}
	if os.Getenv(rankVariable) != "" {
		os.Exit(childMain())
	}
	os.Exit(m.Run())
}

// rank is one rank of a test, with a stream.
type rank struct {
	engine.Engine
	lib    *library
	group  engine.Group
	device gpu.Device
	stream *gpu.Stream
	closed bool // by the test, to hear an error
}

func (r *rank) handle() uintptr {
	h, _ := r.stream.Handle()
	return h
}

// wait is until the stream has done what was issued.
func (r *rank) wait(ctx context.Context) error {
	m, err := r.Mark(r.handle())
	for errors.Is(err, engine.ErrNotNow) && ctx.Err() == nil { // another rank captures
		time.Sleep(50 * time.Microsecond)
		m, err = r.Mark(r.handle())
	}
	if err != nil {
		return err
	}
	for {
		if done, err := m.Passed(); done || err != nil {
			return err
		}
		if err := r.Err(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		time.Sleep(50 * time.Microsecond)
	}
}

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

func open(t testing.TB, v *vendor) *library {
	t.Helper()
	lib, err := v.load()
	require.NoError(t, err)
	return lib
}

// fake is the fake library behind v.
func (v *vendor) fake(t testing.TB) cside.Library {
	t.Helper()
	open(t, v)
	c, err := cside.Open(os.Getenv(v.search.Env))
	require.NoError(t, err)
	return c
}

// world is n ranks in this process, each with a device of its own.
func world(t testing.TB, v *vendor, n int) []*rank {
	t.Helper()
	lib := open(t, v)
	id, err := lib.ID()
	require.NoError(t, err)
	ranks := make([]*rank, n)
	each(t, n, func(i int) error {
		g := engine.Group{Rank: i, Size: n, Device: i, Local: i, Locals: n}
		e, err := lib.New(within(t), g, id)
		if err != nil {
			return err
		}
		ranks[i], err = seat(lib, g, e)
		return err
	})
	t.Cleanup(func() { leave(t, ranks) })
	return ranks
}

func seat(lib *library, g engine.Group, e engine.Engine) (*rank, error) {
	d, err := gpu.Of(lib.v.runtime).Device(g.Device)
	if err != nil {
		return nil, err
	}
	s, err := d.NewStream()
	return &rank{Engine: e, lib: lib, group: g, device: d, stream: s}, err
}

// leave closes all ranks, together unless one cannot: package ccl has the ranks of a host agree on
// that.
func leave(t testing.TB, ranks []*rank) {
	apart := slices.ContainsFunc(ranks, func(r *rank) bool { return r == nil || r.closed || r.end().state.Load() != 0 })
	each(t, len(ranks), func(i int) error {
		r := ranks[i]
		if r == nil {
			return nil
		}
		if r.closed {
			return r.stream.Close()
		}
		if err := r.end().close(apart); err != nil {
			return err
		}
		return r.stream.Close()
	})
}

// end is r's Engine.
func (r *rank) end() *end { return r.Engine.(*end) }

// Issue hands over calls that neither connect nor are timed.
func (r *rank) Issue(stream uintptr, calls []*op.Call) error {
	_, err := r.Engine.Issue(stream, calls, 0)
	return err
}

// each runs f for n ranks at once, and the test ends where one fails.
func each(t testing.TB, n int, f func(i int) error) {
	t.Helper()
	for i, err := range all(n, f) {
		require.NoErrorf(t, err, "rank %d", i)
	}
	if t.Failed() { // a rank has required something
		t.FailNow()
	}
}

// all runs f for n ranks at once.
func all(n int, f func(i int) error) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	return errs
}

// vendors are those that are compiled in.
func vendors(t *testing.T, f func(t *testing.T, v *vendor)) {
	real, some := os.Getenv("GOCCL_REAL") == "1", false
	for _, v := range compiledIn {
		t.Run(v.name, func(t *testing.T) {
			if _, err := v.load(); err != nil && real {
				t.Skip("hardware: " + err.Error())
			}
			some = true
			f(t, v)
		})
	}
	require.True(t, some || !real, "none of the vendors' libraries opens")
}

var compiledIn []*vendor

// addressOf is where a Go value lies.
func addressOf[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }
