package coll

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReadMatrix(t *testing.T) {
	dir := t.TempDir()
	for _, tc := range []struct {
		text, err string
	}{
		{"# to\n1 2\n0,4\n", ""},
		{"1 2\n3\n", "line 2 has 1 numbers, but the first has 2"},
		{"1 2\n", "it is not square: one line of numbers for each rank, as many numbers as lines"},
		{"", "it is not square: one line of numbers for each rank, as many numbers as lines"},
		{"1 x\n", `line 1: "x" is not a number of at least 0`},
		{"1 -1\n", `line 1: "-1" is not a number of at least 0`},
		{"1 NaN\n", `line 1: "NaN" is not a number of at least 0`},
		{"0 0\n", "line 1: a rank sends nothing; give it at least one number above 0"},
	} {
		path := filepath.Join(dir, "m")
		require.NoError(t, os.WriteFile(path, []byte(tc.text), 0o666))
		m, err := ReadMatrix(path)
		if tc.err != "" {
			require.EqualError(t, err, tc.err)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, m.Fits(2))
		require.ErrorContains(t, m.Fits(3), "it is for 2 ranks, and there are 3")
		// The heaviest column, 2 + 4, is the size: 60 elements.
		require.Equal(t, []int{10, 20}, NewShape(2, 0, -1, 30, m).sent)
		require.Equal(t, []int{0, 40}, NewShape(2, 1, -1, 30, m).sent)
		require.Equal(t, []int{20, 40}, NewShape(2, 1, -1, 30, m).received)
	}
	_, err := ReadMatrix(filepath.Join(dir, "none"))
	require.ErrorContains(t, err, "it cannot be read: ")
	for _, bad := range []string{"spread:1", "spread:-1", "spread:x", "spread:NaN"} {
		_, err = ReadMatrix(bad)
		require.ErrorContains(t, err, "a spread is from 0 to less than 1")
	}
}

// Both sides agree, and nobody sends or receives more than the size.
func TestSpread(t *testing.T) {
	m, err := ReadMatrix("spread:0.7")
	require.NoError(t, err)
	const n, count = 7, 100
	for r := range n {
		s := NewShape(n, r, -1, count, m)
		require.LessOrEqual(t, s.totalSent(), n*count)
		require.LessOrEqual(t, s.totalReceived(), n*count)
		require.False(t, s.InPlace())
		for p := range n {
			require.Equal(t, s.sent[p], NewShape(n, p, -1, count, m).received[r])
		}
	}
	require.NoError(t, m.Fits(1000))
}

func FuzzMatrix(f *testing.F) {
	f.Add("1 2\n3 4\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "m")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o666))
		m, err := ReadMatrix(path)
		if err != nil || len(m.rows) > 100 {
			return
		}
		n := len(m.rows)
		for r := range n {
			s := NewShape(n, r, -1, 10, m)
			require.LessOrEqual(t, s.totalReceived(), 10*n)
			require.LessOrEqual(t, s.totalSent(), 10*n)
		}
	})
}
