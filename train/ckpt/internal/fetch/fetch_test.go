package fetch

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt/store"
)

// Every rank reads every other's object at once, also in pieces that are no block; what a holder cannot read is an error of the
// rank that asked, and the exchange goes on.
func TestServe(t *testing.T) {
	const n = 4
	var dirs []store.Store
	for range n {
		dirs = append(dirs, store.Dir(t.TempDir()))
	}
	size := func(r int) int { return Block*r + 10 }
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		ctx, mine := t.Context(), dirs[c.Rank()]
		require.NoError(t, mine.Put(ctx, "x", int64(size(c.Rank())), true, func(w io.Writer) error {
			b := make([]byte, size(c.Rank()))
			for i := range b {
				b[i] = byte(i%251 + c.Rank())
			}
			_, err := w.Write(b)
			return err
		}))
		bad := errors.New("a test's")
		require.ErrorIs(t, Serve(ctx, c, mine, []string{"w", "x"}, func(s *Session) error {
			for k := 1; k < n; k++ {
				from := (c.Rank() + k) % n
				b := make([]byte, size(from)-1)
				require.NoError(t, s.Read(ctx, from, "x", b, 1))
				for i := range b {
					if b[i] != byte((i+1)%251+from) {
						require.Equal(t, byte((i+1)%251+from), b[i], "byte %d of rank %d", i, from)
					}
				}
				err := s.Read(ctx, from, "w", b, 0)
				require.ErrorContains(t, err, fmt.Sprintf("the disk of rank %d: ", from))
				require.ErrorContains(t, s.Read(ctx, from, "x", make([]byte, 3), int64(size(from)-2)), "read x at byte")
				require.ErrorContains(t, s.Read(ctx, from, "y", b, 0), "not among")
			}
			s.End()
			require.ErrorIs(t, s.Read(ctx, (c.Rank()+1)%n, "x", make([]byte, 1), 0), errEnded)
			return bad
		}), bad)
		require.NoError(t, Serve(ctx, c, mine, nil, func(*Session) error { return nil }))
	})
}

func TestTurns(t *testing.T) {
	heads := []int64{1, 0, 0, 9, nothing, 0, 0, 0, 1, 0, 0, 9, 0, 0, 0, 9} // ranks 0 and 2 ask 1, and 3 asks 0
	require.Equal(t, map[int]int{1: 0, 0: 3}, served(heads, 0))
	require.Equal(t, map[int]int{1: 2, 0: 3}, served(heads, 1))
	require.Empty(t, served([]int64{nothing, 0, 0, 0}, 7))
}
