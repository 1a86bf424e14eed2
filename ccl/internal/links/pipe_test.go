package links

import (
	"bytes"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// pipeEnds is a pipe of n bytes, as its writer and its reader have it, start records of which have been taken.
func pipeEnds(n int, start uint32) (w *PipeWriter, r *pipeReader) {
	mem := shm.Aligned(pipeHead + n)
	w, r = newPipeWriter(mem), newPipeReader(mem, 7)
	w.wrote, w.freed, r.read, r.told = start, start, start, start
	w.pipe.taken().Store(uint64(start))
	return w, r
}
func TestPipeCap(t *testing.T) {
	for _, tc := range []struct{ ranks, want int }{
		{0, 64 << 10}, {1, 64 << 10}, {8, 64 << 10}, {9, 32 << 10}, {16, 16 << 10}, {32, 4 << 10}, {1000, 4 << 10},
	} {
		assert.Equal(t, tc.want, tuning.PipeSize(tc.ranks), "%d ranks", tc.ranks)
		assert.Equal(t, pipeHead+tc.want, pipeBytes(tc.ranks))
	}
}

// starts are numbers of records before and around the one that is 0 again.
var starts = []uint32{0, 5, math.MaxUint32 - 6}

// BytesFrom are bytes of which any 64 KiB come again only after as many.
func bytesFrom(first, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := first + i
		b[i] = byte(x*31 + x>>8*17)
	}
	return b
}

func TestPipe(t *testing.T) {
	for _, start := range starts {
		w, r := pipeEnds(4<<10, start)
		n, err := w.TrySend([]byte("0123456789"))
		require.NoError(t, err)
		assert.Equal(t, 10, n)
		long := bytesFrom(0, 8<<10)
		fits, _ := w.TrySend(long)
		assert.GreaterOrEqual(t, fits, len(w.pipe.ring)/2)
		assert.Less(t, fits, 4<<10) // what fits
		n, _ = w.TrySend(make([]byte, 1<<10))
		assert.Equal(t, 0, n)

		b := make([]byte, 8<<10)
		n, err = r.TryRecv(b[:12])
		require.NoError(t, err)
		assert.Equal(t, 12, n)
		assert.Equal(t, "0123456789"+string(long[:2]), string(b[:12]))
		n, _ = r.TryRecv(b)
		assert.Equal(t, long[2:fits], b[:n])
		n, _ = w.TrySend([]byte("ABC"))
		assert.Equal(t, 3, n)
		n, _ = r.TryRecv(b)
		assert.Equal(t, "ABC", string(b[:n]))
		n, _ = r.TryRecv(b)
		assert.Equal(t, 0, n)
		n, _ = r.TryRecv(nil)
		assert.Equal(t, 0, n)
	}
}

// A writer that has found no room finds some once the reader has taken what there is, whatever went before.
func TestPipeAlwaysHasRoomAgain(t *testing.T) {
	for _, size := range []int{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10} {
		for _, start := range starts {
			w, r := pipeEnds(size, start)
			b := make([]byte, size)
			for i := range 3000 {
				for { // full
					n := 1 + i*i*37%(size/2)
					if sent, _ := w.TrySend(b[:n]); sent < n {
						break
					}
				}
				for r.Cell() != nil { // empty
					r.TryRecv(b[:1+i%977])
				}
				for _, n := range []int{1, cellData, cellData + 1, 500, len(w.pipe.ring) / 4} {
					sent, _ := w.TrySend(b[:n])
					require.Equal(t, min(n, len(w.pipe.ring)/4&^63), min(sent, len(w.pipe.ring)/4&^63), "%d bytes, %d of %d", n, i, size)
					for r.Cell() != nil {
						r.TryRecv(b)
					}
				}
			}
		}
	}
}

// Peek shows bytes where they lie, a record at a time; they stay until Discard.
func TestPipePeek(t *testing.T) {
	w, r := pipeEnds(4<<10, 5)
	w.TrySend([]byte("abc"))
	w.TrySend([]byte("def"))
	for range 2 {
		v, err := r.Peek(nil, 100)
		require.NoError(t, err)
		assert.Equal(t, "abc", string(v))
	}
	v, _ := r.Peek(nil, 2)
	assert.Equal(t, "ab", string(v))
	r.Discard(2)
	r.Discard(0)
	v, _ = r.Peek(nil, 100)
	assert.Equal(t, "c", string(v))
	r.Discard(1)
	v, _ = r.Peek(nil, 100)
	assert.Equal(t, "def", string(v))
}

// What is written over cells and data never looks like a flag that is waited for.
func TestCellsAreOnlyCells(t *testing.T) {
	w, r := pipeEnds(4<<10, 0)
	flag := make([]byte, 4<<10)
	b := make([]byte, 4<<10)
	for i := range 10_000 {
		for at := 0; at < len(flag); at += 8 {
			*(*uint64)(unsafe.Pointer(&flag[at])) = uint64(w.wrote+1+uint32(at/8%32))<<32 | 1
		}
		n, _ := w.TrySend(flag[:1+i%1000])
		got, _ := r.TryRecv(b)
		require.Equal(t, flag[:n], b[:got])
		require.Nil(t, r.Cell())
	}
}

// A message read as a stream is its header and its data.
func TestPipeMessageAsStream(t *testing.T) {
	for _, n := range []int{0, 1, cellData, 100, 700, 5000, 40_000} {
		w, r := pipeEnds(64<<10, 3)
		o := Outgoing{L: &Link{To: w}, place: 9, Hash: 77, Left: bytesFrom(n, n)}
		k := &call.Call{Head: op.Head{Record: call.Record{Seq: 12, Count: uint64(n), Kind: call.Send, Type: 4, Root: 2}}}
		var c Links
		for !o.Done {
			require.True(t, c.Pairs.SendHere(&o, k))
		}
		var b [HeadBytes]byte
		got, _ := r.TryRecv(b[:])
		require.Equal(t, HeadBytes, got)
		var h head
		require.NoError(t, h.decode(b[:]))
		assert.Equal(t, head{comm: 7, bytes: uint64(n), kind: messageData, record: call.Record{Place: 9, Seq: 12, Count: uint64(n) / 2, Kind: call.Send, Type: 4, Root: 2, Hash: 77}}, h)
		data := make([]byte, n+1)
		got, _ = r.TryRecv(data)
		assert.Equal(t, bytesFrom(n, n), data[:got])
		assert.Nil(t, r.Cell())
	}
}

// Two ranks that send to each other keep each other's chunks, and never run out of room; none is lost.
func TestChunksGoBackAndForth(t *testing.T) {
	var w [2]*PipeWriter
	var r [2]*pipeReader
	w[0], r[1] = pipeEnds(64<<10, 1)
	w[1], r[0] = pipeEnds(64<<10, 2)
	for i := range r {
		r[i].join(w[i])
	}
	random := rand.New(rand.NewPCG(1, 2))
	var sent, got [2]int
	b := make([]byte, 100_000)
	for i := range 200_000 {
		me := random.IntN(2)
		if random.IntN(2) == 0 {
			e := w[me].cell()
			if e == nil {
				continue
			}
			n := 1 + random.IntN(40_000)>>random.IntN(12)
			copy(b, bytesFrom(sent[me], n))
			if n = w[me].put(e, recordMore, 1, b[:n]); n > 0 {
				sent[me] += n
			}
		} else if e := r[me].Cell(); e != nil {
			if r[me].keep = i>>10&3 != 0; !r[me].keep {
				r[me].release()
			}
			n := copy(b, r[me].data(e))
			require.Equal(t, bytesFrom(got[1-me], n), b[:n])
			got[1-me] += n
			r[me].done(e)
		} else {
			require.Equal(t, sent[1-me], got[1-me])
		}
	}
	for range 2 {
		for me := range 2 {
			for e := r[me].Cell(); e != nil; e = r[me].Cell() {
				r[me].release()
				r[me].done(e)
			}
			r[me].release()
		}
	}
	for me := range 2 {
		w[me].reclaim()
		assert.Equal(t, chunksOf, w[me].nHave)
		assert.Zero(t, w[me].nKept)
		assert.Equal(t, [chunksOf]bool{}, w[me].away)
	}
}

// The first record of a message of some chunks is short, so that a reader with a core of its own begins soon; to one that shares
// the writer's core as much as there is room for goes at once.
func TestFirstRecord(t *testing.T) {
	for _, tc := range []struct {
		name    string
		crowded bool
		bytes   int
		want    int
	}{
		{"small", false, chunkFirst, chunkFirst},
		{"some chunks", false, 4 * chunkBytes, chunkFirst},
		{"many", false, 4*chunkBytes + 1, chunkBytes},
		{"small, crowded", true, chunkFirst, chunkFirst},
		{"some chunks, crowded", true, 4 * chunkBytes, chunkBytes},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w, _ := pipeEnds(tuning.PipeMax, 0)
			w.crowded = tc.crowded
			assert.Equal(t, tc.want, w.put(w.cell(), recordMessage, 1, make([]byte, tc.bytes)))
		})
	}
}

// Streams that cross pass their chunks on while there is more to send, and give them back at the end.
func TestStreamsThatCross(t *testing.T) {
	var w [2]*PipeWriter
	var r [2]*pipeReader
	w[0], r[1] = pipeEnds(64<<10, 1)
	w[1], r[0] = pipeEnds(64<<10, 2)
	for i := range r {
		r[i].join(w[i])
	}
	const total = 1 << 20
	var sent, got [2]int
	all, b := bytesFrom(0, total), make([]byte, 30_000)
	passed := false
	for got != [2]int{total, total} {
		for me := range 2 {
			if sent[me] < total {
				n, err := w[me].TrySend(all[sent[me]:])
				require.NoError(t, err)
				sent[me] += n
			}
			n, err := r[me].TryRecv(b[:1+got[1-me]%len(b)])
			require.NoError(t, err)
			require.Equal(t, all[got[1-me]:][:n], b[:n])
			got[1-me] += n
			passed = passed || w[me].nKept > 0
		}
	}
	assert.True(t, passed)
	for me := range 2 {
		w[me].reclaim()
		assert.Equal(t, chunksOf, w[me].nHave)
		assert.Zero(t, w[me].nKept)
	}
}

// A writer and a reader at once: every byte arrives once, in order.
func TestPipeBetweenGoroutines(t *testing.T) {
	for _, size := range []int{4 << 10, 64 << 10} {
		w, r := pipeEnds(size, math.MaxUint32-1000)
		const total = 10 << 20
		go func() {
			b := bytesFrom(0, 64<<10+5000)
			for sent := 0; sent < total; {
				from := sent % (64 << 10)
				n, _ := w.TrySend(b[from : from+min(1+sent%4999, total-sent)])
				if sent += n; n == 0 {
					runtime.Gosched()
				}
			}
		}()
		b, want := make([]byte, 7777), bytesFrom(0, 64<<10+8000)
		for got := 0; got < total; {
			n, _ := r.TryRecv(b[:1+got%len(b)])
			require.Equal(t, want[got%(64<<10):][:n], b[:n])
			if got += n; n == 0 {
				runtime.Gosched()
			}
		}
	}
}

// Each pair of bytes of script is one step: send or receive so many bytes. The pipe must do what a queue of bytes does.
func FuzzRing(f *testing.F) {
	f.Add(uint32(0), []byte{0, 5, 0x80, 5, 16, 90, 0x92, 90, 3, 1})
	f.Add(uint32(math.MaxUint32-3), []byte{0x0f, 255, 0x84, 4, 0xc3, 3, 0x90, 1})
	f.Add(uint32(13), []byte{1, 2, 3, 4, 5, 6, 0xff, 0xff, 0x3f, 0, 0xbf, 0})
	f.Fuzz(func(t *testing.T, start uint32, script []byte) {
		script = script[:min(len(script), 400)] // 3,000 take 0.2 s, and a fuzzer gives an input up that takes 10 s of a busy machine
		for _, room := range []int{4 << 10, 64 << 10} {
			w, r := pipeEnds(room, start)
			var queue []byte
			next := 0
			for i := 0; i+1 < len(script); i += 2 {
				op, size := script[i]>>6, int(script[i]&63)<<8|int(script[i+1])
				switch op {
				case 0, 1:
					b := bytesFrom(next, size)
					n, err := w.TrySend(b)
					if n > size || err != nil || n == 0 && size > 0 && len(queue) == 0 {
						t.Fatalf("sent %d of %d with %d in it (%v)", n, size, len(queue), err)
					}
					queue = append(queue, b[:n]...)
					next += n
				case 2:
					b := make([]byte, size)
					n, err := r.TryRecv(b)
					if want := min(size, len(queue)); n != want || err != nil || !bytes.Equal(b[:n], queue[:n]) {
						t.Fatalf("got %v, not %v of %v (%v)", b[:n], want, queue, err)
					}
					queue = queue[n:]
				default:
					v, err := r.Peek(nil, size)
					if err != nil || len(v) > min(size, len(queue)) || !bytes.Equal(v, queue[:len(v)]) {
						t.Fatalf("peeked %v of %v (%v)", v, queue, err)
					}
					if size > 0 && len(queue) > 0 && len(v) == 0 {
						t.Fatal("nothing to be seen")
					}
					r.Discard(len(v))
					queue = queue[len(v):]
				}
			}
		}
	})
}
