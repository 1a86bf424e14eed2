package raw

import (
	"errors"
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
)

// far is memory of a device that the test has no way to but its copier.
type far struct{ n int }

func (f *far) Ptr() (uintptr, bool) { return 0x1000, true }
func (f *far) Device() int          { return 0 }
func (f *far) Len() int             { return f.n }
func (f *far) Elem() float32        { return 0 }

// copier has the bytes of the device, and may fail.
type copier struct {
	data []byte
	gets int
	fail error
}

func (c *copier) Get(dst []byte, _ ccl.Buf) error { c.gets++; copy(dst, c.data); return c.fail }
func (c *copier) Put(_ ccl.Buf, src []byte) error { copy(c.data, src); return c.fail }

// adder is a copier that adds up by itself.
type adder struct {
	copier
	sum float64
}

func (a *adder) SumsOfSquares(sums []float64, _ ...ccl.Buf) error { sums[0] = a.sum; return a.fail }

// Views of a device are copied where they stand among those of the host.
func TestViewsOfADevice(t *testing.T) {
	on := &copier{data: []byte{1, 2, 3, 4, 5, 6, 7, 8}}
	v := Views{on}
	a, b := []int8{9}, []int8{10, 11}
	bufs := []ccl.Buf{ccl.BufOf(a), ccl.BufOfMemory[float32](&far{2}), ccl.BufOf(b)}
	data, err := v.Pack(nil, bufs)
	if want := []byte{9, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11}; err != nil || !slices.Equal(data, want) {
		t.Fatalf("packed %v, %v", data, err)
	}
	before, err := v.Hash(bufs)
	if err != nil {
		t.Fatal(err)
	}
	on.data = make([]byte, 8)
	if changed, _ := v.Hash(bufs); changed == before {
		t.Error("the hash does not see memory of the device")
	}
	a[0], b[1] = 0, 0
	if err := v.Unpack(bufs, data); err != nil || a[0] != 9 || b[1] != 11 || on.data[7] != 8 {
		t.Errorf("unpacked %v %v %v, %v", a, b, on.data, err)
	}
	if again, _ := v.Hash(bufs); again != before {
		t.Error("the hash of the same is another")
	}
	on.fail = errors.New("it is gone")
	_, packed := v.Pack(nil, bufs)
	_, hashed := v.Hash(bufs)
	for _, err := range []error{packed, hashed, v.Unpack(bufs, data)} {
		if !errors.Is(err, on.fail) {
			t.Errorf("got %v", err)
		}
	}
	for _, tc := range []struct {
		v    Views
		bufs []ccl.Buf
	}{{Views{}, bufs}, {v, []ccl.Buf{{}}}, {v, []ccl.Buf{bufs[1].From(1, 9)}}} {
		if n, err := tc.v.Len(tc.bufs); !errors.Is(err, ErrDevice) {
			t.Errorf("%d bytes, %v", n, err)
		}
	}
}

// A device that adds up by itself is not copied for a hash, unless it cannot.
func TestHashOnADevice(t *testing.T) {
	on := &adder{copier: copier{data: make([]byte, 8)}, sum: 3}
	v, bufs := Views{on}, []ccl.Buf{ccl.BufOfMemory[float32](&far{2}), ccl.BufOf([]int8{1})}
	before, err := v.Hash(bufs)
	if err != nil || on.gets > 0 {
		t.Fatalf("%v, %d copies", err, on.gets)
	}
	on.sum = 4
	if after, _ := v.Hash(bufs); after == before {
		t.Error("the hash does not see the sum")
	}
	on.fail = errors.New("no kernel")
	if _, err := v.Hash(bufs); err == nil || on.gets != 1 {
		t.Errorf("%v, %d copies", err, on.gets)
	}
}
