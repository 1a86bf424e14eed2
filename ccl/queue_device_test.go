package ccl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
)

// slab is device memory of a test.
type slab struct {
	at       uintptr
	freed    bool
	device   int
	platform string
	words    []int // makes the type one that == cannot compare
}

func (s slab) Ptr() (uintptr, bool) { return s.at, !s.freed }
func (s slab) Device() int          { return s.device }
func (s slab) Platform() string     { return s.platform }

// Where a Buf lies on the Comm's device, or why a call cannot take it.
func TestBufOnDevice(t *testing.T) {
	l := &library{backend: &engine.Backend{Name: "nccl", Platform: "cuda"}, device: 1}
	mine := slab{at: 0x1000, device: 1, platform: "cuda"}
	for _, tc := range []struct {
		b    Buf
		want extent
		err  string
	}{
		{Buf{mem: mine, typ: TypeFloat64, count: 3}, extent{0x1000, 24, 3}, ""},
		{Buf{mem: mine, typ: TypeFloat64, first: 2, count: 3}, extent{0x1010, 24, 3}, ""},
		{Buf{mem: slab{at: 8, device: 1, platform: "rocm"}, typ: TypeInt8, count: 1}, extent{}, "the memory is from package rocm, but the Comm's backend nccl needs memory from package cuda"},
		{Buf{mem: slab{at: 8, platform: "cuda"}, typ: TypeInt8, count: 1}, extent{}, "the memory is on device 0, the Comm on device 1"},
		{Buf{mem: slab{freed: true, device: 1, platform: "cuda"}, typ: TypeInt8, count: 1}, extent{}, "the device memory was freed"},
		{Host([]int32{1}), extent{}, "host memory where device memory is needed: copy it to the device, or issue the call on a HostStream"},
		{Buf{}, extent{}, ""},
		{Buf{typ: TypeInt8}, extent{}, ""}, // Device of nil
	} {
		got, err := tc.b.on(l)
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
}

// identical tells values apart that cannot be compared, and those that are equal, but two.
func TestIdentical(t *testing.T) {
	var a, b deviceMemory = slab{words: make([]int, 1)}, slab{words: make([]int, 1)}
	assert.True(t, identical(a, a))
	assert.False(t, identical(a, b))
	p := &slab{at: 1}
	assert.True(t, identical(p, p))
	assert.False(t, identical(p, nil))
}

// An all-reduce repeats the last call on the device where all but the place in the memory is the same.
func TestRepeats(t *testing.T) {
	mem, other := &slab{at: 1}, &slab{at: 1}
	of := func(f func(q *Queue, dst, src *Buf, op *Op)) bool {
		c := &Comm{lib: &library{known: mem, call: call.Call{Record: call.Record{Kind: call.AllReduce, Type: uint8(TypeInt32), Op: uint8(Max), Count: 5, Root: noRoot}}}}
		q, dst, src, op := &Queue{c: c}, &Buf{mem: mem, typ: TypeInt32, count: 5}, InPlace(), Max
		f(q, dst, &src, &op)
		return q.repeats(dst, &src, op)
	}
	assert.True(t, of(func(*Queue, *Buf, *Buf, *Op) {}))
	assert.True(t, of(func(_ *Queue, dst, _ *Buf, _ *Op) { dst.first = 7 }))
	assert.True(t, of(func(q *Queue, _, _ *Buf, _ *Op) { q.group = &group{} }))
	for name, f := range map[string]func(q *Queue, dst, src *Buf, op *Op){
		"in a group that is over":      func(q *Queue, _, _ *Buf, _ *Op) { q.group = &group{over: true} },
		"in a group that has returned": func(q *Queue, _, _ *Buf, _ *Op) { q.group = &group{use: 1} },
		"kind":                         func(q *Queue, _, _ *Buf, _ *Op) { q.c.lib.call.Kind = call.Reduce },
		"operator":                     func(_ *Queue, _, _ *Buf, op *Op) { *op = Sum },
		"type":                         func(_ *Queue, dst, _ *Buf, _ *Op) { dst.typ = TypeUint32 },
		"count":                        func(_ *Queue, dst, _ *Buf, _ *Op) { dst.count = 4 },
		"memory":                       func(_ *Queue, dst, _ *Buf, _ *Op) { dst.mem = other },
		"no memory":                    func(_ *Queue, dst, _ *Buf, _ *Op) { dst.mem = nil },
		"two places":                   func(_ *Queue, _, src *Buf, _ *Op) { *src = Buf{mem: mem, typ: TypeInt32, count: 5} },
		"queued":                       func(q *Queue, _, _ *Buf, _ *Op) { q.c.backlog.pending.Store(true) },
		"closed":                       func(q *Queue, _, _ *Buf, _ *Op) { q.c.life.closed.Store(true) },
		"number":                       func(q *Queue, _, _ *Buf, _ *Op) { q.number = 1 },
	} {
		assert.False(t, of(f), name)
	}
	assert.Equal(t, &args{kind: KindReduce, typ: TypeInt8, op: Min, root: 2},
		argsOf(&call.Record{Kind: call.Reduce, Type: uint8(TypeInt8), Op: uint8(Min), Root: 2}))
}

// gone is a stream that is closed.
type gone struct{}

func (gone) Handle() (uintptr, bool) { return 0, false }

// Calls on a stream that was closed meanwhile are not handed over.
func TestHandToAClosedStream(t *testing.T) {
	err := (&deviceStream{s: gone{}}).hand(nil, 1, 0)
	require.True(t, errors.Is(err, errStreamGone))
}
