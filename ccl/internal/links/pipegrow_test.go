package links

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// growing is a small pipe that grows into large, which is read as large as soon as it is told.
func growing(t *testing.T, n int) (*PipeWriter, *pipeReader) {
	t.Helper()
	small, large := shm.Aligned(pipeBytes(n)), shm.Aligned(largeBytes)
	w, r := newPipeWriter(small), newPipeReader(small, 7)
	w.pipe.larger = func(off uint64) (uint64, []byte) {
		require.Zero(t, off)
		return 4096, large
	}
	r.pipe.larger = func(off uint64) (uint64, []byte) {
		require.EqualValues(t, 4096, off)
		return off, large
	}
	return w, r
}

// turns is how often two ranks take turns to move a stream: each time all that fits is written, and all of it is read.
func turns(t *testing.T, w *PipeWriter, r *pipeReader, n int) (turns int) {
	t.Helper()
	sent, got := 0, 0
	data, buf := make([]byte, n), make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7 >> 3)
	}
	for ; got < n; turns++ {
		out, err := w.TrySend(data[sent:])
		require.NoError(t, err)
		sent += out
		in, err := r.TryRecv(buf[got:])
		require.NoError(t, err)
		require.False(t, out == 0 && in == 0, "nothing moves")
		got += in
	}
	require.True(t, bytes.Equal(data, buf))
	require.Nil(t, r.Cell())
	return turns
}

// Much data take a turn of both ranks for each fill of the pipe: among 32 ranks a large pipe takes a sixteenth of the turns.
func TestPipeGrows(t *testing.T) {
	const ranks, size = 32, 1 << 20
	small := shm.Aligned(pipeBytes(ranks))
	before := turns(t, newPipeWriter(small), newPipeReader(small, 7), size)
	w, r := growing(t, ranks)
	after := turns(t, w, r, size)
	t.Logf("%d turns, and %d", before, after)
	assert.Greater(t, before, 300)
	assert.Less(t, after, 30)
	assert.Nil(t, w.pipe.larger, "once")
	assert.Equal(t, chunksOf, w.pipe.chunks)
	assert.Less(t, turns(t, w, r, size), 30, "and so again")
}

// What is small stays in the small pipe, however much of it there is.
func TestPipeDoesNotGrowForLittle(t *testing.T) {
	w, r := growing(t, 32)
	for range 10_000 {
		n, _ := w.TrySend(make([]byte, 100))
		require.Equal(t, 100, n)
		n, _ = r.TryRecv(make([]byte, 200))
		require.Equal(t, 100, n)
	}
	require.NotNil(t, w.pipe.larger)
	require.Zero(t, w.pipe.chunks)
}

// Where there is no memory for a larger pipe, the small one goes on; where it cannot be mapped, the reader says so.
func TestPipeThatCannotGrow(t *testing.T) {
	w, r := growing(t, 32)
	w.pipe.larger = func(uint64) (uint64, []byte) { return 0, nil }
	turns(t, w, r, 1<<16)
	require.Nil(t, w.pipe.larger)
	require.Zero(t, w.pipe.chunks)

	w, r = growing(t, 32)
	r.pipe.larger = func(uint64) (uint64, []byte) { return 0, nil }
	sent, _ := w.TrySend(make([]byte, 1<<16))
	got, err := r.TryRecv(make([]byte, sent))
	require.Less(t, got, sent)
	require.True(t, errors.Is(err, errUnmapped))
}

// Messages of all sizes, as pairs of ranks send them: alone, to and fro, and in groups as streams, small ones before and after
// large ones. A rank makes few pipes large, and all are found when the Comm ends.
func TestPairsThatGrow(t *testing.T) {
	const n = 20
	all := ranksOf(t, n, plane.Options{})
	require.Less(t, tuning.PipeSize(n), tuning.PipeMax)
	sizes := []int{1, 3, 4000, 100_000, 5, 300_000, 0, 20_000, 2}
	run := func(c *Links, k *call.Call) *call.Fault { return made(c, k, c.Pairs.PointToPoint) }
	for _, strict := range []bool{false, true} {
		for from := 1; from <= grownMost(n)+1; from++ { // more peers than pipes that may grow
			atOnce(t, []*Links{all[0], all[from]}, func(c *Links) *call.Fault {
				for i, size := range sizes {
					me := c.rank.Group.Rank()
					out, in := vector(me, i, size), make([]int32, size)
					var f *call.Fault
					switch {
					case i%3 == 2:
						k := callOf(call.SendRecv, from-me, size, in, out)
						k.To = from - me
						if strict {
							f = made(c, k, func(ctx context.Context, k *call.Call) *call.Fault {
								c.Messages.Begin()
								if f := c.Pairs.AddPointToPoint(ctx, k); f != nil {
									return f
								}
								return c.Messages.Move(ctx)
							})
						} else {
							f = run(c, k)
						}
						same(t, vector(from-me, i, size), in, "rank %d, message %d", me, i)
					case me == i%2*from:
						f = run(c, callOf(call.Send, from-me, size, nil, out))
					default:
						f = run(c, callOf(call.Recv, from-me, size, in, nil))
						same(t, vector(from-me, i, size), in, "rank %d, message %d", me, i)
					}
					if f != nil {
						return f
					}
				}
				return nil
			})
		}
	}
	require.Equal(t, grownMost(n), all[0].Ends.grown)
	large := 0
	for _, p := range PipesOf(all[0].rank.Share.Host, n, all[0].rank.Share.Local.Row(0).Load()) {
		if p == shm.PlaceAt(p.Off, largeBytes) {
			large++
		}
	}
	require.Equal(t, grownMost(n), large)
}

// A rank makes eight pipes large at most, however many ranks there are, and none where all are.
func TestGrownMost(t *testing.T) {
	for _, tc := range []struct{ ranks, want int }{{1, 0}, {2, 0}, {8, 0}, {9, 8}, {32, 8}, {512, 8}} {
		assert.Equal(t, tc.want, grownMost(tc.ranks), "%d ranks", tc.ranks)
	}
}

// A rank that waits for a pipe that another has not made yet maps nothing anew.
func TestWaitingForAPipeMapsOnce(t *testing.T) {
	all := ranksOf(t, 3, plane.Options{})
	_, err := all[0].Ends.PipeTo(2, PointToPoint)
	require.NoError(t, err)
	look := func() {
		p, err := all[1].Ends.PipeFrom(0, PointToPoint)
		if p != nil || err != nil {
			t.Error("there is no pipe")
		}
	}
	look()
	require.Zero(t, testing.AllocsPerRun(1000, look))
}
