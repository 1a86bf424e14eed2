//go:build oneccl && cgo && linux

package oneccl_test

import (
	"encoding/binary"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/sycl"
)

// memory is where the data of calls lie: the host, or a device behind a queue.
type memory interface {
	alloc(bytes int) uintptr
	put(at uintptr, b []byte)
	get(b []byte, at uintptr)
	call(calls ...*op.Call)
	free()
}

type hostMemory struct {
	r    *rank
	e    engine.Engine
	kept [][]byte
}

func (m *hostMemory) alloc(bytes int) uintptr {
	b := make([]byte, bytes+8)
	m.kept = append(m.kept, b)
	return uintptr(unsafe.Pointer(&b[0]))
}
func (m *hostMemory) put(at uintptr, b []byte) {
	copy(unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), len(b)), b)
}
func (m *hostMemory) get(b []byte, at uintptr) {
	copy(b, unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), len(b)))
}
func (m *hostMemory) call(calls ...*op.Call) { require.NoError(m.r, m.e.Run(m.r.ctx, calls)) }
func (m *hostMemory) free()                  {}

type deviceMemory struct {
	r    *rank
	e    engine.Engine
	dev  int
	q    sycl.Queue
	kept []uintptr
}

func (m *deviceMemory) alloc(bytes int) uintptr {
	p, err := sycl.New(m.dev, sycl.OnDevice, bytes+8)
	require.NoError(m.r, err)
	m.kept = append(m.kept, p)
	return p
}
func (m *deviceMemory) put(at uintptr, b []byte) {
	if len(b) > 0 {
		require.NoError(m.r, m.q.Put(at, unsafe.Pointer(&b[0]), len(b)))
	}
}
func (m *deviceMemory) get(b []byte, at uintptr) {
	if len(b) > 0 {
		require.NoError(m.r, m.q.Get(unsafe.Pointer(&b[0]), at, len(b)))
	}
}

// call waits by a mark, as ccl does.
func (m *deviceMemory) call(calls ...*op.Call) {
	_, err := m.e.Issue(uintptr(m.q), calls, 0)
	require.NoError(m.r, err)
	mark, err := m.e.Mark(uintptr(m.q))
	require.NoError(m.r, err)
	for done := false; !done; {
		done, err = mark.Passed()
		require.NoError(m.r, err)
	}
}
func (m *deviceMemory) free() {
	for _, p := range m.kept {
		require.NoError(m.r, sycl.Free(m.dev, p))
	}
}

// put and get store a small number as an element of a type, exactly.
func put(b []byte, t ccl.Type, i, v int) {
	switch t {
	case ccl.TypeFloat16:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(ccl.ToFloat16(float32(v))))
	case ccl.TypeBFloat16:
		binary.LittleEndian.PutUint16(b[2*i:], uint16(ccl.ToBFloat16(float32(v))))
	case ccl.TypeFloat32:
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(v)))
	case ccl.TypeFloat64:
		binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(float64(v)))
	default:
		for k := range t.Size() {
			b[i*t.Size()+k] = byte(v >> (8 * k))
		}
	}
}

func TestPut(t *testing.T) {
	b := make([]byte, 16)
	put(b, ccl.TypeInt16, 1, -2)
	put(b, ccl.TypeFloat32, 1, 3)
	require.Equal(t, []byte{0, 0, 254, 255, 0, 0, 64, 64}, b[:8])
}
