package main

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/gpu"
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
	switch at := c.Place().Device; c.Backend() {
	case "nccl":
		return onDevice[gpu.CUDA](at)
	case "rccl":
		return onDevice[gpu.ROCm](at)
	}
	return &host{s: ccl.NewHostStream(), all: make([]float32, buckets*count)}, nil
}

// device is a GPU of either vendor. Programs for one of them use package cuda or rocm.
type device[P gpu.Platform] struct {
	name string
	s    *gpu.Stream[P]
	all  [buckets]*gpu.Mem[float32, P]
}

func onDevice[P gpu.Platform](at int) (*device[P], error) {
	d, err := gpu.At[P](at)
	if err != nil {
		return nil, err
	}
	name, err := d.Name()
	if err != nil {
		return nil, err
	}
	m := &device[P]{name: fmt.Sprintf("%v (%s)", d, name)}
	if m.s, err = d.NewStream(); err != nil {
		return nil, err
	}
	for b := range m.all {
		if m.all[b], err = gpu.Alloc[float32](d, count); err != nil {
			m.close()
			return nil, err
		}
	}
	return m, nil
}

func (m *device[P]) String() string                 { return m.name }
func (m *device[P]) stream() ccl.Stream             { return m.s }
func (m *device[P]) bucket(b int) ccl.Buf           { return ccl.BufOfMemory(m.all[b]) }
func (m *device[P]) put(b int, src []float32) error { return m.all[b].Put(src) }
func (m *device[P]) get(dst []float32, b int) error { return m.all[b].Get(dst) }

func (m *device[P]) close() {
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
func (m *host) bucket(b int) ccl.Buf           { return ccl.BufOf(m.part(b)) }
func (m *host) put(b int, src []float32) error { copy(m.part(b), src); return nil }
func (m *host) get(dst []float32, b int) error { copy(dst, m.part(b)); return nil }
func (m *host) close()                         { m.s.Close() }
