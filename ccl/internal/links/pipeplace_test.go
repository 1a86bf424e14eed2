package links

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// A pipe is where its writer says, for one reader and one class; its memory is found again when the Comm ends.
func TestPipesHavePlaces(t *testing.T) {
	const n = 3
	all := ranksOf(t, n, plane.Options{})
	find := func(c *Links, from int, cl class) *pipeReader {
		p, err := c.Ends.PipeFrom(from, cl)
		require.NoError(t, err)
		return p
	}
	require.Nil(t, find(all[1], 0, collective), "rank 0 has no row")
	require.Zero(t, all[0].rank.Share.Local.Row(0).Load())
	w, err := all[0].Ends.PipeTo(1, collective)
	require.NoError(t, err)
	require.NotZero(t, all[0].rank.Share.Local.Row(0).Load())
	require.Nil(t, find(all[1], 0, PointToPoint), "another class")
	require.Nil(t, find(all[2], 0, collective), "another reader")
	r := find(all[1], 0, collective)
	require.Same(t, &w.pipe.mem[0], &r.pipe.mem[0])
	require.Equal(t, all[1].rank.Group.ID(), r.comm)
	w.TrySend([]byte("abc"))
	b := make([]byte, 9)
	got, err := r.TryRecv(b)
	require.NoError(t, err)
	require.Equal(t, "abc", string(b[:got]))

	_, err = all[0].Ends.PipeTo(2, Agreements)
	require.NoError(t, err)
	row := all[0].rank.Share.Local.Row(0).Load()
	places := PipesOf(all[0].rank.Share.Host, n, row)
	require.Equal(t, shm.PlaceAt(row, rowBytes(n)), places[0])
	require.Equal(t, 8*n*int(classes), rowBytes(n), "pipes among so few do not grow")
	require.Len(t, places, 3)
	for _, p := range places[1:] {
		require.Equal(t, shm.PlaceAt(p.Off, pipeBytes(n)), p)
	}
}
