package ccl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// slab is device memory of a test.
type slab struct {
	at       uintptr
	freed    bool
	device   int
	platform string
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
		want area
		err  string
	}{
		{Buf{mem: mine, typ: TypeFloat64, count: 3}, area{at: 0x1000, n: 3}, ""},
		{Buf{mem: mine, typ: TypeFloat64, first: 2, count: 3}, area{at: 0x1010, n: 3}, ""},
		{Buf{mem: slab{at: 8, device: 1, platform: "rocm"}, typ: TypeInt8, count: 1}, area{}, "the memory is from package rocm, but the Comm's backend nccl works with package cuda"},
		{Buf{mem: slab{at: 8, platform: "cuda"}, typ: TypeInt8, count: 1}, area{}, "the memory is on device 0, the Comm on device 1"},
		{Buf{mem: slab{freed: true, device: 1, platform: "cuda"}, typ: TypeInt8, count: 1}, area{}, "the device memory was freed"},
		{BufOf([]int32{1}), area{}, "host memory where device memory is needed: copy it to the device, or issue the call on a HostStream"},
		{Buf{}, area{}, ""},
		{Buf{typ: TypeInt8}, area{}, ""}, // Device of nil
	} {
		got, err := tc.b.deviceArea(l)
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, tc.want, got)
	}
}

// tallied counts how often it is asked for its device. Values of it cannot be compared.
type tallied struct {
	times *int
	_     []int
}

func (tallied) Ptr() (uintptr, bool) { return 8, true }
func (m tallied) Device() int        { *m.times++; return 0 }

// Memory is known again by its identity, also where its type cannot be compared. An equal value is another.
func TestKnownMemory(t *testing.T) {
	times := 0
	l := &library{backend: &engine.Backend{Name: "nccl"}}
	var a, b deviceMemory = tallied{times: &times}, tallied{times: &times}
	for i, tc := range []struct {
		mem  deviceMemory
		want int
	}{{a, 1}, {a, 1}, {b, 2}, {b, 2}, {a, 2}} {
		_, err := (&Buf{mem: tc.mem, typ: TypeInt8, count: 1}).deviceArea(l)
		require.NoError(t, err)
		assert.Equal(t, tc.want, times, i)
	}
}

// gone is a stream that is closed.
type gone struct{}

func (gone) Handle() (uintptr, bool) { return 0, false }

// Calls on a stream that was closed meanwhile are not handed over.
func TestHandToAClosedStream(t *testing.T) {
	err := (&deviceStream{s: gone{}}).submit(nil, 1, 0)
	require.True(t, errors.Is(err, errStreamGone))
}
