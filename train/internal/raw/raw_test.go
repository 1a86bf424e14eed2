package raw

import (
	"slices"
	"testing"

	"github.com/goccl/goccl/ccl"
)

// host has no memory but the host's.
var host Views

// What Pack has copied, Unpack writes back, of every type.
func TestPack(t *testing.T) {
	a, b, c := []float32{1, 2, 3}, []ccl.BFloat16{4, 5}, []int8{6}
	d, e, f := []float64{7}, []uint8{}, []ccl.Float8E5M2{8, 9, 10}
	bufs := func() []ccl.Buf {
		return []ccl.Buf{ccl.BufOf(a), ccl.BufOf(b), ccl.BufOf(c), ccl.BufOf(d), ccl.BufOf(e), ccl.BufOf(f)}
	}
	data, err := host.Pack(nil, bufs())
	if err != nil || len(data) != 12+4+1+8+0+3 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	clear(a)
	clear(b)
	clear(c)
	clear(d)
	clear(f)
	host.Unpack(bufs(), data)
	if !slices.Equal(a, []float32{1, 2, 3}) || !slices.Equal(b, []ccl.BFloat16{4, 5}) || c[0] != 6 || d[0] != 7 || !slices.Equal(f, []ccl.Float8E5M2{8, 9, 10}) {
		t.Errorf("got %v %v %v %v %v", a, b, c, d, f)
	}
	again, _ := host.Pack(data, bufs()[:1])
	if len(again) != 12 || &again[0] != &data[0] {
		t.Error("pack made memory anew though there was enough")
	}
	if _, err := host.Pack(nil, []ccl.Buf{{}}); err != ErrDevice {
		t.Errorf("of no memory: %v", err)
	}
}

// The hash sees each bit, each length, and where one slice ends.
func TestHash(t *testing.T) {
	s := make([]uint8, 77)
	hash := func(bufs ...ccl.Buf) int64 {
		h, err := Hash(bufs)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	seen := map[int64]bool{hash(ccl.BufOf(s)): true, hash(ccl.BufOf(s[:76])): true, hash(ccl.BufOf(s[:10]), ccl.BufOf(s[10:])): true}
	for i := range s {
		for bit := range 8 {
			s[i] ^= 1 << bit
			seen[hash(ccl.BufOf(s))] = true
			s[i] ^= 1 << bit
		}
	}
	if len(seen) != 3+8*len(s) {
		t.Errorf("%d different hashes of %d", len(seen), 3+8*len(s))
	}
	if hash(ccl.BufOf(s)) != hash(ccl.BufOf(slices.Clone(s))) {
		t.Error("equal slices hash differently")
	}
}
