// Package toy holds no code, only a test: a vendor in one file, on which bench runs. It is all that CONTRIBUTING calls a
// backend, but for the C library behind it.
package toy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// The toy knows one call, on devices that are goroutines and whose memory is the heap.
func init() {
	engine.Register(engine.Backend{
		Name: "toy", Title: "Toy", Platform: "toy",
		Files:    engine.Files{Env: "TOY_LIB", Names: []string{"libtoy.so.1"}, Advice: "install the toy"},
		Hardware: engine.Hardware{Vendor: "Toys", Node: "/dev/toy0"},
		Aliases:  []string{"plaything"},
		Settings: []string{"TOY_*"},
		Visible:  []string{"TOY_VISIBLE_DEVICES"},
		Harms:    []engine.Harm{{Name: "TOY_DEBUG", Why: "the toy chatters", Remedy: "unset TOY_DEBUG"}},
		Failures: []engine.Failure{{Pattern: "toy box is shut", Advice: "open the toy box"}},
		Choose:   choose,
		Open: func() (*engine.Library, error) {
			return &engine.Library{Version: "Toy 1.0", Interruptible: true, Windows: engine.ErrUnsupported, ID: newID, IDBytes: 8, New: newEnd}, nil
		},
		Devices: engine.Devices{Count: func() (int, error) { return 4, nil }, Open: openDevice},
	})
}

func choose(want, local, _ int) (int, error) {
	if want >= 0 {
		local = want
	}
	if local > 3 {
		return 0, fmt.Errorf("toy: device %d: there are 4", local)
	}
	return local, nil
}

// rooms are where the ranks of communicators meet, by id.
var rooms struct {
	sync.Mutex
	all []*room
}

type room struct {
	mu   sync.Mutex
	in   map[int][2][]float32 // by rank: dst and src
	full chan struct{}        // closed when all are in, and their sums out
}

func newID() ([]byte, error) {
	rooms.Lock()
	defer rooms.Unlock()
	rooms.all = append(rooms.all, &room{in: map[int][2][]float32{}, full: make(chan struct{})})
	return fmt.Appendf(nil, "%08d", len(rooms.all)-1), nil
}

// end is one rank's end of a communicator.
type end struct {
	engine.Lacking
	g    engine.Group
	room *room
	once sync.Once
	stop chan struct{}
}

func newEnd(_ context.Context, g engine.Group, id []byte) (engine.Engine, error) {
	n, err := strconv.Atoi(string(id))
	if err != nil {
		return nil, err
	}
	rooms.Lock()
	defer rooms.Unlock()
	return &end{g: g, room: rooms.all[n], stop: make(chan struct{})}, nil
}

func (e *end) Supports(k op.Kind, t op.Type, o op.Op, host bool) error {
	if host || k != op.AllReduce || t != op.Float32 || o != op.Sum {
		return errors.New("the toy sums float32 on its devices, and does nothing else")
	}
	return nil
}

func (e *end) Run(context.Context, []*op.Call) error { return engine.ErrUnsupported }

func (e *end) Issue(s uintptr, calls []*op.Call, _ engine.How) (engine.Span, error) {
	for _, c := range calls {
		own := *c // package ccl uses it again
		streams.at(s).push(func() { e.sum(&own) })
	}
	return nil, nil
}

// sum waits for all ranks, of which the last makes the sums of all.
func (e *end) sum(c *op.Call) {
	r := e.room
	r.mu.Lock()
	full := r.full
	r.in[e.g.Rank] = [2][]float32{floats(c.DstAt, int(c.Count)), floats(c.SrcAt, int(c.Count))}
	if len(r.in) == e.g.Size {
		total := make([]float32, c.Count)
		for rank := range e.g.Size {
			for i, x := range r.in[rank][1] {
				total[i] += x
			}
		}
		for rank := range e.g.Size {
			copy(r.in[rank][0], total)
		}
		clear(r.in)
		r.full = make(chan struct{})
		close(full)
	}
	r.mu.Unlock()
	select {
	case <-full:
	case <-e.stop:
	}
}

// floats is memory of a block, which bench keeps.
func floats(at uintptr, n int) []float32 { return unsafe.Slice(*(**float32)(unsafe.Pointer(&at)), n) }

func (e *end) Mark(s uintptr) (engine.Mark, error) {
	m := &event{}
	return m, m.Record(streams.at(s))
}

func (e *end) Abort()       { e.once.Do(func() { close(e.stop) }) }
func (e *end) Close() error { return nil }

// stream runs what it is given, in order.
type stream struct {
	handle uintptr
	tasks  chan func()
}

var streams registry

// registry has streams by handle.
type registry struct {
	mu  sync.Mutex
	all []*stream
}

func (r *registry) at(h uintptr) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[h]
}

func (r *registry) open() (*stream, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &stream{uintptr(len(r.all)), make(chan func(), 1024)}
	r.all = append(r.all, s)
	go func() {
		for f := range s.tasks {
			f()
		}
	}()
	return s, nil
}

func (s *stream) Handle() (uintptr, bool) { return s.handle, true }
func (s *stream) Close() error            { close(s.tasks); return nil }
func (s *stream) push(f func())           { s.tasks <- f }

// event is when a stream got to a place.
type event struct {
	at   time.Time
	done chan struct{}
}

func (m *event) Record(s *stream) error {
	done := make(chan struct{})
	m.done = done
	s.push(func() {
		m.at = time.Now()
		close(done)
	})
	return nil
}

func (m *event) Close() error { return nil }

func (m *event) Synchronize() error {
	<-m.done
	return nil
}

func (m *event) Since(from *event) (time.Duration, error) { return m.at.Sub(from.at), nil }

func (m *event) Passed() (bool, error) {
	select {
	case <-m.done:
		return true, nil
	default:
		return false, nil
	}
}

func openDevice(at, local, locals int) (*engine.Device, error) {
	n, err := choose(at, local, locals)
	if err != nil {
		return nil, err
	}
	d, _, err := engine.OpenDevice(device(n), streams.open, func() (*event, error) { return &event{}, nil })
	d.Alloc = func(_ bool, bytes int) (engine.Block, error) {
		words := make([]uint64, bytes/8+1)
		return &block{n, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), bytes)}, nil
	}
	return d, err
}

type device int

func (d device) Index() int            { return int(d) }
func (d device) Name() (string, error) { return "Toy", nil }
func (d device) PCI() (string, error)  { return "0000:0" + strconv.Itoa(int(d)), nil }

// block is memory of a device.
type block struct {
	device int
	b      []byte
}

func (b *block) Ptr() (uintptr, bool)    { return uintptr(unsafe.Pointer(unsafe.SliceData(b.b))), true }
func (b *block) Device() int             { return b.device }
func (b *block) Platform() string        { return "toy" }
func (b *block) Put(src []uint8) error   { copy(b.b, src); return nil }
func (b *block) Get(dst []uint8) error   { copy(dst, b.b); return nil }
func (b *block) Slice() ([]uint8, error) { return b.b, nil }
func (b *block) Free() error             { return nil }
