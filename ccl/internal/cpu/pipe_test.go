package cpu

import (
	"bytes"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// pipeEnds is a pipe of n bytes, as its writer and its reader have it, whose counters
// stand at start.
func pipeEnds(n int, start uint64) (w, r *pipe) {
	mem := aligned(pipeHead + n)
	w, r = newPipe(mem), newPipe(mem)
	w.tail.Store(start)
	w.head.Store(start)
	w.seen, r.seen = start, start
	return w, r
}

func TestPipeCap(t *testing.T) {
	for _, tc := range []struct{ ranks, want int }{
		{0, 64 << 10}, {1, 64 << 10}, {8, 64 << 10}, {9, 32 << 10}, {16, 16 << 10}, {32, 4 << 10}, {1000, 4 << 10},
	} {
		assert.Equal(t, tc.want, pipeCap(tc.ranks), "%d ranks", tc.ranks)
		assert.Equal(t, pipeHead+tc.want, pipeBytes(tc.ranks))
	}
}

func TestPipe(t *testing.T) {
	for _, start := range []uint64{0, 5, math.MaxUint64 - 6} { // the counters may go around
		w, r := pipeEnds(16, start)
		n, err := w.TrySend([]byte("0123456789"))
		require.NoError(t, err)
		assert.Equal(t, 10, n)
		n, _ = w.TrySend([]byte("abcdefghij"))
		assert.Equal(t, 6, n) // what fits
		n, _ = w.TrySend([]byte("x"))
		assert.Equal(t, 0, n)

		b := make([]byte, 12)
		n, err = r.TryRecv(b)
		require.NoError(t, err)
		assert.Equal(t, 12, n)
		assert.Equal(t, "0123456789ab", string(b))
		n, _ = w.TrySend([]byte("ABC"))
		assert.Equal(t, 3, n)
		n, _ = r.TryRecv(b)
		assert.Equal(t, "cdefABC", string(b[:n]))
		n, _ = r.TryRecv(b)
		assert.Equal(t, 0, n)
		n, _ = r.TryRecv(nil)
		assert.Equal(t, 0, n)
	}
}

// Peek shows bytes where they lie, up to the ring's end; they stay until Discard.
func TestPipePeek(t *testing.T) {
	w, r := pipeEnds(8, 5)
	w.TrySend([]byte("abcdef"))
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

// A writer and a reader at once: every byte arrives once, in order.
func TestPipeBetweenGoroutines(t *testing.T) {
	w, r := pipeEnds(64, math.MaxUint64-1000)
	const total = 100_000
	go func() {
		var b [100]byte
		for sent := 0; sent < total; {
			m := min(1+sent%len(b), total-sent)
			for i := range m {
				b[i] = byte(sent + i)
			}
			n, _ := w.TrySend(b[:m])
			if sent += n; n == 0 {
				runtime.Gosched()
			}
		}
	}()
	var b [77]byte
	for got := 0; got < total; {
		n, _ := r.TryRecv(b[:1+got%len(b)])
		for i := range n {
			require.Equal(t, byte(got+i), b[i])
		}
		if got += n; n == 0 {
			runtime.Gosched()
		}
	}
}

// Each byte of script is one step: send or receive so many bytes. The pipe must do
// what a queue of bytes does.
func FuzzRing(f *testing.F) {
	f.Add(uint64(0), []byte{5, 0x85, 16, 0x90, 31})
	f.Add(uint64(math.MaxUint64-3), []byte{16, 0x84, 4, 0xc3, 3, 0x90})
	f.Add(uint64(13), []byte{1, 2, 3, 4, 5, 6, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, start uint64, script []byte) {
		w, r := pipeEnds(16, start)
		var queue []byte
		next := byte(0)
		for _, op := range script {
			size := int(op & 31)
			switch op >> 6 {
			case 0, 1:
				b := make([]byte, size)
				for i := range b {
					b[i] = next + byte(i)
				}
				n, err := w.TrySend(b)
				if want := min(size, 16-len(queue)); n != want || err != nil {
					t.Fatalf("sent %d of %d with %d in it, not %d (%v)", n, size, len(queue), want, err)
				}
				queue = append(queue, b[:n]...)
				next += byte(n)
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
	})
}
