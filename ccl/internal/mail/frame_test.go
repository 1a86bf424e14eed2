package mail

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestFrames(t *testing.T) {
	for _, f := range []frame{
		{kind: frameHead, path: Path{1 << 63, Subset, -5}, typ: op.Float64, n: 16, seq: 9, count: 2, pid: 3, at: 4, word: 5, number: 6},
		{kind: frameTaken, code: takenNot, typ: op.Int8, seq: 1},
		{kind: frameData, n: pieceMost},
	} {
		var b [frameBytes]byte
		var got frame
		f.encode(b[:])
		require.NoError(t, got.decode(b[:]))
		require.Equal(t, f, got)
	}
}

// FuzzFrame: whatever comes, a frame is refused or means what it says.
func FuzzFrame(f *testing.F) {
	var b [frameBytes]byte
	one := frame{kind: frameHead, typ: op.Float32, n: 8, count: 2, seq: 1}
	one.encode(b[:])
	f.Add(b[:])
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < frameBytes {
			return
		}
		var got frame
		if got.decode(b) != nil {
			return
		}
		var again [frameBytes]byte
		got.encode(again[:])
		require.Equal(t, b[:frameBytes], again[:])
		require.LessOrEqual(t, got.n, uint32(pieceMost))
		if got.kind == frameHead && got.n > 0 {
			require.Equal(t, uint64(got.n), got.bytes())
		}
	})
}
