package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

// A library in a few lines of Go, for the tests of what lies around a library: it knows
// AllReduce of int64 and Barrier, does not notice when ranks make different calls, and waits
// for ever for a rank that does not come.
type toyBackend struct {
	mu    sync.Mutex
	rooms map[string]*room
	ids   int

	open    func(nth int) (version string, err error) // nth: the how many-th rank asks
	opened  atomic.Int32
	new     func(g engine.Group) error
	run     func(g engine.Group, calls []*op.Call) error
	aborted atomic.Int32
	closed  atomic.Int32
	made    atomic.Int32

	gathers  bool // the ranks of a host close together
	apart    atomic.Int32
	unmarked atomic.Int32 // Closes without an Abort
	held     []*heldAbort // by rank
}

// backend is b in the place of MPI.
func (b *toyBackend) backend() engine.Backend { return engine.Backend{Name: "mpi", Open: b.Open} }

func (b *toyBackend) Open() (*engine.Library, error) {
	l := &toyLibrary{toyBackend: b, version: "Toy 1.0"}
	var err error
	if b.open != nil {
		l.version, err = b.open(int(b.opened.Add(1)) - 1)
	}
	return &engine.Library{Version: l.version, Interruptible: true, Gathers: b.gathers, ID: l.ID, IDBytes: 16, New: l.New}, err
}

type toyLibrary struct {
	*toyBackend
	version string
}

func (l *toyLibrary) ID() ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ids++
	return fmt.Appendf(nil, "room %11d", l.ids), nil
}

func (l *toyLibrary) New(ctx context.Context, g engine.Group, id []byte) (engine.Engine, error) {
	if l.new != nil {
		if err := l.new(g); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rooms == nil {
		l.rooms = map[string]*room{}
	}
	if l.rooms[string(id)] == nil {
		l.rooms[string(id)] = &room{full: make(chan struct{})}
	}
	l.made.Add(1)
	e := &toyEngine{toyLibrary: l, g: g, room: l.rooms[string(id)], stop: make(chan struct{})}
	if l.gathers {
		toy := gatheringToy{toyEngine: e}
		if l.held != nil {
			toy.held = l.held[g.Rank]
		}
		return toy, nil
	}
	return e, nil
}

// room is where the ranks of a communicator meet.
type room struct {
	mu   sync.Mutex
	in   [][]int64
	full chan struct{} // closed when all are in
}

type toyEngine struct {
	engine.Lacking
	*toyLibrary
	g    engine.Group
	room *room
	once sync.Once
	stop chan struct{}
}

func (e *toyEngine) Supports(k op.Kind, t op.Type, _ op.Op, _ bool) error {
	if k == op.AllReduce && t == op.Float64 {
		return errors.New("the toy has no float64")
	}
	return nil
}

func (e *toyEngine) Run(_ context.Context, calls []*op.Call) error {
	if e.run != nil {
		if err := e.run(e.g, calls); err != nil {
			return err
		}
	}
	for _, c := range calls {
		if err := e.call(c); err != nil {
			return err
		}
	}
	return nil
}

func (e *toyEngine) call(c *op.Call) error {
	at := func(p uintptr) []int64 { // the address is one of the Go heap: the caller keeps it
		return unsafe.Slice(*(**int64)(unsafe.Pointer(&p)), c.Count)
	}
	var src, dst []int64
	if c.Kind == op.AllReduce && c.Count > 0 {
		src, dst = append([]int64(nil), at(c.SrcAt)...), at(c.DstAt)
	}
	r := e.room
	r.mu.Lock()
	r.in = append(r.in, src)
	full := r.full
	if len(r.in) == e.g.Size {
		all := r.in
		r.in, r.full = nil, make(chan struct{})
		sum := make([]int64, len(src))
		for _, x := range all {
			for i := range min(len(x), len(sum)) {
				sum[i] += x[i]
			}
		}
		for _, x := range all {
			copy(x, sum)
		}
		close(full)
	}
	r.mu.Unlock()
	select {
	case <-full:
		copy(dst, src)
		return nil
	case <-e.stop:
		return &engine.LibraryError{Library: e.version, Call: "toyAllReduce", Result: 7, Text: "interrupted"}
	}
}

func (e *toyEngine) Abort()          { e.once.Do(func() { close(e.stop); e.aborted.Add(1) }) }
func (e *toyEngine) Close() error    { e.closed.Add(1); return nil }
func (e *toyEngine) Native() uintptr { return uintptr(1000 + e.g.Rank) }

func onToy(o ccl.Options) *ccl.Options {
	o.Backend = "mpi"
	return &o
}

func TestCallsGoThroughTheLibrary(t *testing.T) {
	for name, check := range map[string]ccl.Check{"async": ccl.CheckAsync, "strict": ccl.CheckStrict} {
		t.Run(name, func(t *testing.T) {
			var ran atomic.Int32
			toy := &toyBackend{run: func(_ engine.Group, calls []*op.Call) error { ran.Add(int32(len(calls))); return nil }}
			ccl.SetBackend(t, toy.backend())
			everywhere(t, 3, onToy(ccl.Options{Check: check}), func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				ran.Store(0)
				meet(ctx)
				works(ctx, t, c)
				meet(ctx)
				assert.EqualValues(t, 3, ran.Load())
				meet(ctx)
				assert.NoError(t, ccl.Barrier(ctx, c))
				assert.Equal(t, "mpi", c.Backend())
				assert.Equal(t, "Toy 1.0", c.Library())
				assert.EqualValues(t, 1000+c.Rank(), c.Native())
				assert.Equal(t, "Toy 1.0", c.Plan(ccl.KindAllReduce, ccl.TypeInt64, ccl.Sum, 1))

				x := []int64{1}
				w := c.On(nil).AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Sum)
				assert.NoError(t, w.Wait(ctx))
				assert.Equal(t, []int64{3}, x)

				wants(t, ccl.AllReduce(ctx, c, []float64{1}, []float64{1}, ccl.Sum), ccl.ErrUnsupported)
				wants(t, c.Supports(ccl.KindAllReduce, ccl.TypeFloat64, ccl.Sum), ccl.ErrUnsupported)

				child, err := c.Split(ctx, c.Rank()%2, 0)
				if assert.NoError(t, err) {
					works(ctx, t, child)
					assert.Equal(t, "mpi", child.Backend())
					assert.NoError(t, child.Close())
				}
				works(ctx, t, c)
			})
			assert.Equal(t, toy.made.Load(), toy.closed.Load())
		})
	}
}

// What goes wrong on one rank while the library is opened is the same error on all.
func TestLibraryThatDoesNotStart(t *testing.T) {
	for _, tc := range []struct {
		name string
		toy  *toyBackend
		code ccl.Code
		text string // of a rank that is not at fault
	}{
		{"open", &toyBackend{open: func(nth int) (string, error) {
			if nth == 1 {
				return "", errors.New("libtoy.so: no such file")
			}
			return "Toy 1.0", nil
		}}, ccl.ErrBackend, "libtoy.so: no such file"},
		{"version", &toyBackend{open: func(nth int) (string, error) { return fmt.Sprintf("Toy 1.%d", nth/2), nil }},
			ccl.ErrVersion, "ranks have different libraries: rank"},
		{"new", &toyBackend{new: func(g engine.Group) error {
			if g.Rank == 1 {
				return &engine.LibraryError{Library: "Toy 1.0", Call: "toyInit", Result: 3, Text: "out of toys"}
			}
			return nil
		}}, ccl.ErrBackend, "out of toys"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccl.SetBackend(t, tc.toy.backend())
			for r, err := range refusedComms(t, 3, func(int) *ccl.Options { return onToy(ccl.Options{}) }) {
				e := wants(t, err, tc.code)
				assert.Contains(t, e.Error(), tc.text, "rank %d", r)
				if tc.name == "new" {
					assert.Equal(t, 1, e.Peer)
				}
				var v *ccl.VendorError
				if tc.name == "new" && r == 1 && assert.ErrorAs(t, err, &v) {
					assert.Equal(t, ccl.VendorError{Library: "Toy 1.0", Result: 3, Text: "toyInit: out of toys"}, *v)
				}
			}
			assert.Equal(t, tc.toy.made.Load(), tc.toy.closed.Load())
		})
	}
}

// The library gives both ranks something; that they meant different things is found all the same.
func TestMismatchInALibrary(t *testing.T) {
	ccl.SetBackend(t, (&toyBackend{}).backend())
	everywhere(t, 2, onToy(ccl.Options{Check: ccl.CheckStrict}), func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		x := []int64{1, 2}
		op := ccl.Sum
		if c.Rank() == 1 {
			op = ccl.Max
		}
		e := wants(t, ccl.AllReduce(ctx, c, x, x, op), ccl.ErrMismatch)
		assert.Equal(t, 1-c.Rank(), e.Peer)
		assert.Equal(t, []int64{1, 2}, x, "no data before all have the same call")
	})
	t.Run("async", func(t *testing.T) {
		world(t, 2, nil, func(int) *ccl.Options { return onToy(ccl.Options{}) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			x := []int64{1, 2}
			op := ccl.Sum
			if c.Rank() == 1 {
				op = ccl.Max
			}
			e := wants(t, ccl.AllReduce(ctx, c, x, x, op), ccl.ErrMismatch)
			assert.Equal(t, 1-c.Rank(), e.Peer)
			if assert.NotNil(t, e.Theirs) {
				assert.Equal(t, []ccl.Op{ccl.Max, ccl.Sum}[c.Rank()], e.Theirs.Op)
			}
		})
	})
}

// A rank that does not come: the others leave the library at the timeout, and know whom they waited for.
func TestTimeoutInALibrary(t *testing.T) {
	toy := &toyBackend{}
	ccl.SetBackend(t, toy.backend())
	world(t, 3, nil, func(int) *ccl.Options { return onToy(ccl.Options{Timeout: time.Second}) }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		if c.Rank() == 1 {
			<-c.Done()
			assert.Error(t, c.Err())
			return
		}
		e := wants(t, ccl.Barrier(ctx, c), ccl.ErrTimeout)
		assert.Equal(t, 1, e.Peer)
	})
	assert.Equal(t, toy.made.Load(), toy.aborted.Load())
	assert.Equal(t, toy.made.Load(), toy.closed.Load())
}

// A context that ends, and Abort, end a call inside the library.
func TestLibraryIsInterrupted(t *testing.T) {
	ccl.SetBackend(t, (&toyBackend{}).backend())
	everywhere(t, 3, onToy(ccl.Options{}), func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		meet(ctx)
		if c.Rank() == 2 {
			cause := errors.New("no more")
			c.Abort(cause)
			assert.ErrorIs(t, c.Err(), cause)
			return
		}
		e := wants(t, sum(ctx, c), ccl.ErrAborted)
		assert.Equal(t, 2, e.Peer)
	})
	everywhere(t, 2, onToy(ccl.Options{}), func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		if c.Rank() == 1 {
			<-c.Done()
			return
		}
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		defer cancel()
		wants(t, sum(ctx, c), ccl.ErrTimeout)
	})
}

// An error of the library in one call fails the Comm everywhere, and names the rank.
func TestLibraryFails(t *testing.T) {
	toy := &toyBackend{run: func(g engine.Group, calls []*op.Call) error {
		if g.Rank == 1 && calls[0].Count == 5 {
			return &engine.LibraryError{Library: "Toy 1.0", Call: "toyAllReduce", Result: math.MaxInt32, Text: "cable unplugged"}
		}
		return nil
	}}
	ccl.SetBackend(t, toy.backend())
	everywhere(t, 3, onToy(ccl.Options{}), func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		meet(ctx) // who is still in NewComm hears of it there
		x := make([]int64, 5)
		e := wants(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum), ccl.ErrBackend)
		assert.Equal(t, 1, e.Peer)
		assert.Contains(t, e.Error(), "cable unplugged")
	})
}

func TestBackends(t *testing.T) {
	assert.Equal(t, "cpu", ccl.Backends()[0])
}

// Programs built with other tags may be one job only where all are told what to use.
func TestBuildsDiffer(t *testing.T) {
	open, named := ccl.Agreed(ccl.Options{}), ccl.Agreed(ccl.Options{Backend: "cpu"})
	ccl.SetBackend(t, (&toyDevice{}).backend())
	assert.Contains(t, ccl.Agreed(ccl.Options{}), `;build tags="cpu,nccl`)
	assert.NotEqual(t, open, ccl.Agreed(ccl.Options{}))
	assert.Equal(t, named, ccl.Agreed(ccl.Options{Backend: "cpu"}))
}
