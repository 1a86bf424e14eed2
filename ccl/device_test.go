package ccl_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// toyStream is a stream of the toy's device: a goroutine that runs what was issued, in order.
type toyStream struct {
	mu        sync.Mutex
	tasks     []func()
	issued    int
	passed    int
	busy      bool
	capturing bool
	closed    bool
}

var toyStreams sync.Map // by handle

func newToyStream() *toyStream {
	s := &toyStream{}
	h, _ := s.Handle()
	toyStreams.Store(h, s)
	return s
}

func (s *toyStream) Handle() (uintptr, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return uintptr(unsafe.Pointer(s)), !s.closed
}

func (s *toyStream) push(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issued++
	s.tasks = append(s.tasks, f)
	if !s.busy {
		s.busy = true
		go s.work()
	}
}

func (s *toyStream) work() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.tasks) > 0 {
		f := s.tasks[0]
		s.tasks = s.tasks[1:]
		s.mu.Unlock()
		f()
		s.mu.Lock()
		s.passed++
	}
	s.busy = false
}

// toyDevice is the toy library on its own device, 0.
type toyDevice struct {
	toyBackend
	issues atomic.Int32 // how often calls were handed over
	async  atomic.Bool  // Err reports an error
}

// backend is b in the place of NCCL.
func (b *toyDevice) backend() engine.Backend {
	return engine.Backend{Name: "nccl", Choose: func(int, int, int) (int, error) { return 0, nil }, Open: b.Open}
}

func (b *toyDevice) Open() (*engine.Library, error) {
	l, err := b.toyBackend.Open()
	onHost := l.New
	l.New = func(ctx context.Context, g engine.Group, id []byte) (engine.Engine, error) {
		e, err := onHost(ctx, g, id)
		if err != nil {
			return nil, err
		}
		return &toyDeviceEngine{e.(*toyEngine), b}, nil
	}
	return l, err
}

type toyDeviceEngine struct {
	*toyEngine
	b *toyDevice
}

func (e *toyDeviceEngine) Issue(h uintptr, calls []*op.Call, _ engine.How) (engine.Span, error) {
	e.b.issues.Add(1)
	s, _ := toyStreams.Load(h)
	var mine []*op.Call
	for _, c := range calls { // which package ccl uses again
		own := *c
		mine = append(mine, &own)
	}
	s.(*toyStream).push(func() {
		for _, c := range mine {
			_ = e.call(c) // an interruption shows in the stream's end, as on a device
		}
	})
	return nil, nil
}

type toyMark struct {
	s  *toyStream
	at int
}

func (m toyMark) Passed() (bool, error) {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	return m.s.passed >= m.at, nil
}

func (e *toyDeviceEngine) Mark(h uintptr) (engine.Mark, error) {
	v, _ := toyStreams.Load(h)
	s := v.(*toyStream)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.capturing {
		return nil, engine.ErrCapturing
	}
	return toyMark{s, s.issued}, nil
}

func (e *toyDeviceEngine) Err() error {
	if e.b.async.Load() && e.g.Rank == 0 {
		return &engine.LibraryError{Library: "Toy 1.0", Call: "toyCommGetAsyncError", Result: 6, Text: "remote process exited"}
	}
	return nil
}

// toyMem is memory of the toy's device: of the Go heap.
type toyMem struct {
	x      []int64
	device int
	freed  bool
}

func (m *toyMem) Ptr() (uintptr, bool) {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.x))), !m.freed
}
func (m *toyMem) Device() int { return m.device }
func (m *toyMem) Len() int    { return len(m.x) }
func (m *toyMem) Elem() int64 { return 0 }

func onDevice(x ...int64) *toyMem { return &toyMem{x: x} }

func view(m *toyMem) ccl.Buf { return ccl.BufOfMemory[int64](m) }

func onToyDevice(t *testing.T, n int, o ccl.Options, f func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream)) *toyDevice {
	toy := &toyDevice{}
	ccl.SetBackend(t, toy.backend())
	o.Backend = "nccl"
	world(t, n, nil, func(int) *ccl.Options { return &o }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		f(ctx, t, c, newToyStream())
	})
	return toy
}

func TestDeviceQueue(t *testing.T) {
	for name, check := range map[string]ccl.Check{"async": ccl.CheckAsync, "strict": ccl.CheckStrict} {
		t.Run(name, func(t *testing.T) {
			toy := onToyDevice(t, 2, ccl.Options{Check: check}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
				q := c.On(s)
				src, dst := onDevice(1, 2, int64(c.Rank())), onDevice(0, 0, 0)
				w := q.AllReduce(view(dst), view(src), ccl.Sum)
				assert.NoError(t, w.Wait(ctx))
				assert.Equal(t, []int64{2, 4, 1}, dst.x)
				assert.Equal(t, []int64{1, 2, int64(c.Rank())}, src.x)

				// Part of it, in place.
				w = q.AllReduce(view(dst).From(1, 3), ccl.InPlace(), ccl.Sum)
				assert.NoError(t, w.Wait(ctx))
				assert.Equal(t, []int64{2, 8, 2}, dst.x)
				done, err := w.Test()
				assert.True(t, done)
				assert.NoError(t, err)

				// A group is one hand-over.
				meet(ctx)
				toyOf(c).issues.Store(0)
				meet(ctx)
				w = q.Group(func(g ccl.Queue) error {
					g.AllReduce(view(dst).From(0, 1), ccl.InPlace(), ccl.Sum)
					g.AllReduce(view(dst).From(1, 2), ccl.InPlace(), ccl.Sum)
					return nil
				})
				assert.NoError(t, w.Wait(ctx))
				assert.Equal(t, []int64{4, 16, 2}, dst.x)
				meet(ctx)
				assert.EqualValues(t, 2, toyOf(c).issues.Load())
				meet(ctx)

				// Host slices still go through the CPU engine, after what is queued.
				for range 100 {
					w = q.AllReduce(view(dst).From(0, 1), ccl.InPlace(), ccl.Max)
				}
				works(ctx, t, c)
				done, err = w.Test()
				assert.True(t, done)
				assert.NoError(t, err)
				for call := range c.Trace() {
					assert.Equal(t, ccl.Complete, call.State, call.String())
				}
			})
			assert.Equal(t, toy.made.Load(), toy.closed.Load())
		})
	}
}

// toyOf is the device behind c.
func toyOf(c *ccl.Comm) *toyDevice { return ccl.EngineOf(c).(*toyDeviceEngine).b }

// What a device would crash on, or wait for ever, is refused before it gets there.
func TestDeviceQueueRefuses(t *testing.T) {
	good := onDevice(1, 2)
	for _, tc := range []struct {
		name  string
		issue func(q ccl.Queue) ccl.Work
		code  ccl.Code
		text  string
	}{
		{"host memory", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.BufOf([]int64{1, 2}), view(good), ccl.Sum) },
			ccl.ErrArgument, "dst: host memory where device memory is needed"},
		{"freed", func(q ccl.Queue) ccl.Work {
			return q.AllReduce(view(good), view(&toyMem{x: []int64{1, 2}, freed: true}), ccl.Sum)
		},
			ccl.ErrArgument, "src: the device memory was freed"},
		{"other device", func(q ccl.Queue) ccl.Work {
			return q.AllReduce(view(good), view(&toyMem{x: []int64{1, 2}, device: 3}), ccl.Sum)
		}, ccl.ErrArgument, "src: the memory is on device 3, the Comm on device 0"},
		{"length", func(q ccl.Queue) ccl.Work { return q.AllReduce(view(good), view(onDevice(1, 2, 3)), ccl.Sum) },
			ccl.ErrArgument, "dst has 2 elements, src 3: dst must have 3"},
		{"bounds", func(q ccl.Queue) ccl.Work { return q.Broadcast(view(good).From(1, 3), 0) },
			ccl.ErrArgument, "Buf.From was out of bounds"},
		{"overlap", func(q ccl.Queue) ccl.Work {
			m := onDevice(1, 2, 3)
			return q.AllReduce(view(m).From(0, 2), view(m).From(1, 3), ccl.Sum)
		}, ccl.ErrArgument, "dst and src overlap partially"},
		{"error in a group", func(q ccl.Queue) ccl.Work { return q.Group(func(ccl.Queue) error { return errors.New("no idea") }) },
			ccl.ErrArgument, "no idea"},
		{"call in a group", func(q ccl.Queue) ccl.Work {
			return q.Group(func(g ccl.Queue) error { g.AllReduce(view(good), view(onDevice(1)), ccl.Sum); return nil })
		}, ccl.ErrArgument, "dst has 2 elements, src 1: dst must have 1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			onToyDevice(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
				meet(ctx)
				if c.Rank() == 1 { // it learns that a call of rank 0 will never come
					m := onDevice(1, 2)
					e := wants(t, c.On(s).AllReduce(view(m), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrMismatch)
					assert.Equal(t, 0, e.Peer)
					return
				}
				e := wants(t, tc.issue(c.On(s)).Wait(ctx), tc.code)
				assert.Contains(t, e.Error(), tc.text)
			})
		})
	}
}

func TestStreamsThatDoNotFit(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		m := onDevice(1)
		e := wants(t, c.On(newToyStream()).AllReduce(view(m), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrUnsupported)
		assert.Contains(t, e.Error(), "the cpu backend runs on a HostStream")
	})
	onToyDevice(t, 1, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		s.closed = true
		m := onDevice(1)
		e := wants(t, c.On(s).AllReduce(view(m), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrArgument)
		assert.Contains(t, e.Error(), "is closed")
	})
	onToyDevice(t, 1, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, _ *toyStream) {
		m := onDevice(1)
		e := wants(t, c.On(nil).AllReduce(view(m), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrArgument)
		assert.Contains(t, e.Error(), "device memory needs a queue on a stream of the device")
	})
}

// On a stream that is being captured no mark may be set: waiting there makes no sense, and says so.
func TestCapture(t *testing.T) {
	onToyDevice(t, 1, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		s.capturing = true
		m := onDevice(1)
		w := c.On(s).AllReduce(view(m), ccl.InPlace(), ccl.Sum)
		e := wants(t, w.Wait(ctx), ccl.ErrArgument)
		assert.Contains(t, e.Error(), "captured into a graph")
		s.mu.Lock()
		s.capturing = false
		s.mu.Unlock()
		assert.NoError(t, w.Wait(ctx))
	})
}

// A stream that stands still, since a peer never comes, is freed at the timeout.
func TestDeviceTimeout(t *testing.T) {
	toy := onToyDevice(t, 3, ccl.Options{Timeout: time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		meet(ctx)
		if c.Rank() == 1 {
			<-c.Done()
			return
		}
		m := onDevice(1)
		e := wants(t, c.On(s).AllReduce(view(m), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrTimeout)
		assert.Equal(t, 1, e.Peer)
	})
	assert.Equal(t, toy.made.Load(), toy.aborted.Load())
}

// What the library notices by itself ends the Comm, with its text.
func TestDeviceError(t *testing.T) {
	onToyDevice(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		meet(ctx)
		if c.Rank() == 1 {
			<-c.Done()
			assert.Contains(t, c.Err().Error(), "remote process exited")
			return
		}
		toyOf(c).async.Store(true)
		m := onDevice(1)
		e := wants(t, c.On(s).AllReduce(view(m), ccl.InPlace(), ccl.Sum).Wait(ctx), ccl.ErrBackend)
		var v *ccl.VendorError
		if assert.ErrorAs(t, e, &v) {
			assert.Equal(t, 6, v.Result)
		}
	})
}

// Wait's context ends the waiting, not the call.
func TestDeviceWaitEnds(t *testing.T) {
	onToyDevice(t, 2, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		m := onDevice(1)
		if c.Rank() == 1 {
			meet(ctx)
		}
		w := c.On(s).AllReduce(view(m), ccl.InPlace(), ccl.Sum)
		if c.Rank() == 0 {
			done, err := w.Test()
			assert.False(t, done)
			assert.NoError(t, err)
			soon, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			wants(t, w.Wait(soon), ccl.ErrTimeout)
			meet(ctx)
		}
		assert.NoError(t, w.Wait(ctx))
		assert.Equal(t, []int64{2}, m.x)
	})
}

func TestDeviceQueueAllocatesNothing(t *testing.T) {
	onToyDevice(t, 1, ccl.Options{}, func(ctx context.Context, t *testing.T, c *ccl.Comm, s *toyStream) {
		quiet := &quietEngine{}
		ccl.SetEngine(c, quiet)
		q, buf := c.On(s), view(onDevice(1, 2))
		q.AllReduce(buf, ccl.InPlace(), ccl.Sum)
		if !raceDetector {
			assert.Zero(t, testing.AllocsPerRun(1000, func() { q.AllReduce(buf, ccl.InPlace(), ccl.Sum) }))
		}
	})
}

// quietEngine takes calls and does nothing.
type quietEngine struct{ engine.Lacking }

func (*quietEngine) Supports(op.Kind, op.Type, op.Op, bool) error { return nil }
func (*quietEngine) Run(context.Context, []*op.Call) error        { return nil }
func (*quietEngine) Issue(uintptr, []*op.Call, engine.How) (engine.Span, error) {
	return nil, nil
}
func (*quietEngine) Mark(uintptr) (engine.Mark, error) { return toyMark{s: &toyStream{}}, nil }
func (*quietEngine) Abort()                            {}
func (*quietEngine) Close() error                      { return nil }

func BenchmarkDeviceQueue(b *testing.B) {
	toy := &toyDevice{}
	ccl.SetBackend(b, toy.backend())
	c, err := ccl.NewComm(context.Background(), alone{}, &ccl.Options{Backend: "nccl"})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	ccl.SetEngine(c, &quietEngine{})
	q, buf := c.On(newToyStream()), view(onDevice(1, 2))
	b.ReportAllocs()
	for b.Loop() {
		q.AllReduce(buf, ccl.InPlace(), ccl.Sum)
	}
}
