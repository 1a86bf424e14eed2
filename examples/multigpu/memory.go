package main

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/rocm"
)

// memory is where the buckets lie, and the stream that orders work on them.
type memory interface {
	fmt.Stringer
	stream() ccl.Stream
	bucket(b int) ccl.Buf
	put(b int, src []float32) error // returns once src may be overwritten
	get(dst []float32, b int) error
	close()
}

// open is memory on the device of this rank where c has a library for one, else on the host.
func open(c *ccl.Comm) (memory, error) {
	at := c.Place()
	switch c.Backend() {
	case "nccl":
		d, err := cuda.Local(at.Local, at.Locals)
		if err != nil {
			return nil, err
		}
		return onDevice(d)
	case "rccl":
		d, err := rocm.Local(at.Local, at.Locals)
		if err != nil {
			return nil, err
		}
		return onDevice(d)
	}
	return &host{s: ccl.NewHostStream(), all: make([]float32, buckets*count)}, nil
}

// device is a GPU of either vendor: packages cuda and rocm have the same types.
type device struct {
	name string
	s    *cuda.Stream
	all  [buckets]*cuda.Mem[float32]
}

func onDevice(d cuda.Device) (*device, error) {
	name, err := d.Name()
	if err != nil {
		return nil, err
	}
	m := &device{name: fmt.Sprintf("%v (%s)", d, name)}
	if m.s, err = d.NewStream(); err != nil {
		return nil, err
	}
	for b := range m.all {
		if m.all[b], err = cuda.Alloc[float32](d, count); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

func (m *device) String() string                 { return m.name }
func (m *device) stream() ccl.Stream             { return m.s }
func (m *device) bucket(b int) ccl.Buf           { return ccl.Device(m.all[b]) }
func (m *device) put(b int, src []float32) error { return m.all[b].Put(src) }
func (m *device) get(dst []float32, b int) error { return m.all[b].Get(dst) }

func (m *device) close() {
	m.s.Synchronize()
	for _, x := range m.all {
		x.Free()
	}
	m.s.Close()
}

// host is the same on the CPU.
type host struct {
	s   *ccl.HostStream
	all []float32
}

func (m *host) part(b int) []float32 { return m.all[b*count : (b+1)*count] }

func (m *host) String() string                 { return "the CPU" }
func (m *host) stream() ccl.Stream             { return m.s }
func (m *host) bucket(b int) ccl.Buf           { return ccl.Host(m.part(b)) }
func (m *host) put(b int, src []float32) error { copy(m.part(b), src); return nil }
func (m *host) get(dst []float32, b int) error { copy(dst, m.part(b)); return nil }
func (m *host) close()                         { m.s.Close() }
