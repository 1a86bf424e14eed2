package harness

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
)

// present reports whether this process sees a device of a backend.
func present(backend string) bool {
	b := engine.Find(backend)
	if b == nil || b.Devices.Count == nil {
		return false
	}
	n, err := b.Devices.Count()
	return err == nil && n > 0
}

// chooseDevice fills in what the command line leaves to the devices that are there: the backend, where the
// buffers lie, and when calls are waited for, which is on a device at the end, as in nccl-tests.
func (p *plan) chooseDevice() {
	if i := slices.IndexFunc(ccl.Backends(), present); i >= 0 && !p.BackendGiven && !p.MemGiven && p.Plan == "" {
		p.Backends = []string{ccl.Backends()[i]}
	}
	if !p.MemGiven && !slices.ContainsFunc(p.Backends,
		func(name string) bool { return !present(name) || name != p.Backends[0] }) {
		p.Mem = "device"
	}
	if p.Mem != "host" && !p.BlockingGiven {
		p.Blocking = option.WaitAtEnd
	}
}

// openDevice opens the device of this rank's lanes, which share it with the buffers.
func (s *session) openDevice() (err error) {
	if s.o.Mem == "host" {
		return nil
	}
	name := s.o.Backends[0]
	for _, other := range s.o.Backends {
		if other != name {
			return fmt.Errorf("-mem %s -backend %s,%s: two backends cannot share device memory; add -mem host, or measure one at a time", s.o.Mem, name, other)
		}
	}
	b := engine.Find(name)
	if b == nil || b.Devices.Open == nil {
		return fmt.Errorf("-mem %s: no such memory in this build; host memory is always available", s.o.Mem)
	}
	if s.o.Registered && s.o.Mem == "managed" {
		return errors.New("-R 1 or 2 -mem managed: only device or host memory can be registered, not memory that moves between them; leave one out")
	}
	at := s.world.Place()
	s.dev, err = b.Devices.Open(s.o.DeviceOf(at.Local), at.Local, at.Locals)
	if err == nil && s.o.Graph > 0 && s.dev.Capture == nil {
		return fmt.Errorf("-G %d: the %s backend has no graphs; leave it out", s.o.Graph, name)
	}
	return err
}

// onDevice makes memory of the session's device.
func (s *session) onDevice(n int) (buffer, error) {
	if s.dev == nil {
		return nil, fmt.Errorf("-mem %s: no such memory in this build; host memory is always available", s.o.Mem)
	}
	if s.o.Windows {
		return s.window(n)
	}
	managed := s.o.Mem == "managed"
	b, err := s.dev.Alloc(managed, n)
	if err != nil {
		return nil, err
	}
	d := &deviceBuffer{block: b}
	if managed {
		if d.b, err = b.Slice(); err == nil {
			return d, nil
		}
		b.Free()
		return nil, err
	}
	d.b, d.copied = alloc(n), true
	if !s.o.Registered {
		return d, nil
	}
	return s.register(d, 1, func(c *ccl.Comm) (func() error, error) {
		return c.Register(s.ctx, ccl.BufOfMemory[uint8](part[uint8]{b, 0, n}))
	})
}

// register makes d known to each lane, as -R how says.
func (s *session) register(d *deviceBuffer, how int,
	to func(c *ccl.Comm) (release func() error, err error)) (buffer, error) {
	for i := range s.lanes {
		release, err := to(s.lanes[i].c)
		if err != nil {
			d.free()
			return nil, fmt.Errorf("-R %d: %w", how, err)
		}
		d.registered = append(d.registered, release)
	}
	return d, nil
}

// deviceBuffer is memory of a device. Where the host cannot see it, what it sees is a copy.
type deviceBuffer struct {
	block      engine.Block
	b          []byte
	copied     bool
	registered []func() error    // what undoes it
	made       ccl.Memory[uint8] // of the library, whose view the block is; else nil
}

// window is n bytes of the library, with a window of each lane.
func (s *session) window(n int) (buffer, error) {
	if s.dev.At == nil {
		return nil, fmt.Errorf("-R 2: the %s backend has no windows; leave it out", s.o.Backends[0])
	}
	m, err := ccl.MakeDevice[uint8](s.ctx, s.lanes[0].c, n)
	if err != nil {
		return nil, fmt.Errorf("-R 2: %w", err)
	}
	d := &deviceBuffer{made: m, b: alloc(n), copied: true}
	addr, _ := m.Ptr()
	if d.block, err = s.dev.At(addr, n); err != nil {
		return nil, errors.Join(err, ccl.FreeDevice(m))
	}
	return s.register(d, 2, func(c *ccl.Comm) (func() error, error) { return c.Window(s.ctx, ccl.BufOfMemory(m)) })
}

func (d *deviceBuffer) bytes() []byte { return d.b }

func (d *deviceBuffer) up(n int) error {
	if !d.copied {
		return nil
	}
	return d.block.Put(d.b[:n])
}

func (d *deviceBuffer) down(n int) error {
	if !d.copied {
		return nil
	}
	return d.block.Get(d.b[:n])
}

func (d *deviceBuffer) free() {
	for _, release := range d.registered {
		release()
	}
	d.block.Free()
	if d.made != nil {
		ccl.FreeDevice(d.made)
	}
}

// bufOf is x, which lies in what the host sees of the buffers, as calls get it.
func bufOf[T ccl.Number](s *session, x []T) ccl.Buf {
	if len(x) == 0 {
		return ccl.BufOf[T](nil)
	}
	at := uintptr(unsafe.Pointer(&x[0]))
	for _, b := range []buffer{s.a, s.b} {
		d, ok := b.(*deviceBuffer)
		if !ok {
			continue
		}
		if first := uintptr(unsafe.Pointer(&d.b[0])); first <= at && at < first+uintptr(len(d.b)) {
			return ccl.BufOfMemory[T](part[T]{d.block, at - first, len(x)})
		}
	}
	return ccl.BufOf(x)
}

// part is elements of a block, of any type.
type part[T ccl.Number] struct {
	block engine.Block
	off   uintptr
	n     int
}

func (p part[T]) Ptr() (uintptr, bool) {
	at, ok := p.block.Ptr()
	return at + p.off, ok
}
func (p part[T]) Device() int      { return p.block.Device() }
func (p part[T]) Platform() string { return p.block.Platform() }
func (p part[T]) Len() int         { return p.n }
func (p part[T]) Elem() (zero T)   { return zero }
