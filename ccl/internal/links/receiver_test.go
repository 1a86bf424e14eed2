package links

import (
	"hash/crc32"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
)

// minus computes a - b: of a reduction by it, the order of the operands can be told.
func minus(dst, a, b unsafe.Pointer, n int) {
	d, x, y := unsafe.Slice((*int32)(dst), n), unsafe.Slice((*int32)(a), n), unsafe.Slice((*int32)(b), n)
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

// words are n multiples of a large number by f.
func words(n int, f uint64) (w []uint64) {
	for i := range n {
		w = append(w, f*uint64(i+1)*0x0102030405060708)
	}
	return w
}

func bytesOfWords(v []uint64) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))
}

// A payload is combined as it comes, in whatever pieces, also ones that end in the midst of an element, in the order of
// ranks; what the result begins as may lie elsewhere.
func TestAbsorb(t *testing.T) {
	const count = 40
	came, own := vector(7, 0, count), vector(3, 0, count)
	for _, piece := range []int{1, 3, 4, 5, 7, 8, 64, 4 * count} {
		for _, first := range []bool{false, true} {
			for _, elsewhere := range []bool{false, true} {
				to := append([]int32(nil), own...)
				r := receiver{to: bytesOf(to), fold: folding{fn: minus, elem: 4, first: first, own: bytesOf(to)}}
				if elsewhere {
					clear(to)
					r.fold.own = bytesOf(own)
				}
				for b := bytesOf(came); len(b) > 0; {
					n := min(piece, len(b))
					r.absorb(b[:n])
					b = b[n:]
					require.Equal(t, (4*count-len(b))/4*4, r.in)
					require.Equal(t, (4*count-len(b))%4, r.fold.carried)
				}
				for i := range to {
					want := own[i] - came[i]
					if first {
						want = -want
					}
					require.Equal(t, want, to[i], "element %d, pieces of %d bytes, received first %v, own elsewhere %v", i, piece, first, elsewhere)
				}
			}
		}
	}
	for piece := 1; piece < 40; piece++ { // the largest element there is, of 16 bytes
		to, b := make([]uint64, 20), bytesOfWords(words(20, 3))
		sum := func(dst, a, b unsafe.Pointer, n int) {
			d, x, y := unsafe.Slice((*uint64)(dst), 2*n), unsafe.Slice((*uint64)(a), 2*n), unsafe.Slice((*uint64)(b), 2*n)
			for i := range d {
				d[i] = x[i] + y[i]
			}
		}
		r := receiver{to: bytesOfWords(to), fold: folding{fn: sum, elem: 16, own: bytesOfWords(words(20, 4))}}
		for len(b) > 0 {
			n := min(piece, len(b))
			r.absorb(b[:n])
			b = b[n:]
		}
		require.Equal(t, words(20, 7), to, "pieces of %d bytes", piece)
	}
	r := receiver{to: make([]byte, 9), check: checksum{on: true}}
	r.absorb(r.to[:4])
	r.absorb(r.to[4:])
	assert.Equal(t, 9, r.in, "what only moves lies in place already")
	assert.Equal(t, crc32.Checksum(make([]byte, 9), Castagnoli), r.check.sum)
}

// Where a step sends what it reduces into, whole words of what has left may change, and all of it when all has left.
func TestLimit(t *testing.T) {
	to := make([]byte, 100)
	large := sender{l: new(Link), frontLen: HeadBytes, body: to, out: 23}
	for _, tc := range []struct {
		name  string
		after *sender
		want  int
	}{
		{"nothing is sent", nil, 100},
		{"some has left", &large, 16},
		{"all has left", &sender{done: true}, 100},
		{"a copy is sent", &sender{frontLen: HeadBytes + 100}, 96},
		{"none has left", &sender{l: new(Link), frontLen: HeadBytes, body: to}, 0},
	} {
		assert.Equal(t, tc.want, (&receiver{to: to, after: tc.after}).limit(), tc.name)
	}
	var c messages
	assert.Empty(t, c.room(&receiver{to: to, prev: new(receiver)}), "another receive goes first")
	assert.Len(t, c.room(&receiver{to: to, prev: &receiver{done: true}, in: 30}), 70)
	assert.Same(t, &to[30], &c.room(&receiver{to: to, in: 30})[0], "what only moves comes to its place")
	folded := c.room(&receiver{to: to, in: 32, fold: folding{fn: minus, carried: 3}})
	assert.Len(t, folded, 65, "three bytes more have come")
	assert.Same(t, &c.wire[0], &folded[0])
	assert.Empty(t, c.room(&receiver{to: to, in: 16, after: &large}))
}

// A header that is not the expected one is a mismatch, of the calls that differ first, or tells why the peer leaves.
func TestWrongHead(t *testing.T) {
	const me, peer = 0, 1
	record := func(place uint64, hash uint32) call.Record {
		return call.Record{Place: place, Hash: hash, Kind: call.AllReduce}
	}
	for _, tc := range []struct {
		name         string
		change       func(h *head)
		code         call.Code
		peer         int
		mine, theirs *call.Record
	}{
		{"another call", func(h *head) { h.record.Hash = 9 }, call.Mismatch, peer, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}, &call.Record{Place: 8, Hash: 9, Kind: call.AllReduce}},
		{"the peer went on", func(h *head) { h.record, h.before = record(9, 11), record(8, 10) }, call.Mismatch, peer, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}, &call.Record{Place: 8, Hash: 10, Kind: call.AllReduce}},
		{"another step", func(h *head) { h.step++ }, call.Mismatch, peer, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}},
		{"another length", func(h *head) { h.bytes-- }, call.Mismatch, peer, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}},
		{"another Comm", func(h *head) { h.comm++ }, call.Mismatch, peer, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}},
		{"the peer closes", func(h *head) { h.kind = messageBye }, call.Closed, peer, nil, &call.Record{Place: 8, Hash: 5, Kind: call.AllReduce}},
		{"the peer closes without a call", func(h *head) { h.kind, h.record = messageBye, call.Record{} }, call.Closed, peer, nil, nil},
		{"the peer has failed", func(h *head) { h.kind, h.step, h.record.Root = messageFailed, uint32(call.Aborted), peer }, call.Aborted, peer, nil, nil},
		{"damaged", nil, call.Backend, peer, nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := ranksOf(t, 2, plane.Options{})[me]
			lives(t, c.rank.Site.Job)
			h := head{comm: c.rank.Group.ID(), bytes: 64, step: 2, kind: messageData, record: record(8, 5), before: record(7, 4)}
			r := &receiver{l: &Link{peer: peer}, head: arrival{want: h}}
			h.encode(r.head.got[:])
			require.Nil(t, c.Messages.checkHead(t.Context(), r), "the expected one")
			if tc.change == nil {
				r.head.got[48]++
			} else {
				tc.change(&h)
				h.encode(r.head.got[:])
			}
			f := c.Messages.checkHead(t.Context(), r)
			require.NotNil(t, f)
			assert.Equal(t, tc.code, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.Equal(t, tc.mine, f.Mine)
			assert.Equal(t, tc.theirs, f.Theirs)
		})
	}
}
