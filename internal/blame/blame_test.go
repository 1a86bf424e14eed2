package blame

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMost(t *testing.T) {
	for _, tc := range []struct {
		text string
		rank int
		ok   bool
	}{
		{"", 0, false},
		{"2\n", 2, true},
		{"0\n", 0, true},
		{"2\n1\n1\n", 1, true},
		{"2\n1\n", 1, true},
		{"4\n-1\nx\n\n", 0, false},
		{"3", 0, false}, // cut off
		{"9999999999999999999999\n3\n", 3, true},
	} {
		rank, ok := Most([]byte(tc.text), 4)
		require.Equal(t, tc.ok, ok, tc.text)
		require.Equal(t, tc.rank, rank, tc.text)
	}
}

func TestAreUnused(t *testing.T) {
	for text, want := range map[string][]bool{
		"":                                  {false, false, false},
		"1\nunused 1\nunused 1\n2\n":        {false, true, false},
		"unused 2\nunused 0\n":              {true, false, true},
		"unused 3\nunused -1\nunused x\n":   {false, false, false},
		"unused 1":                          {false, false, false}, // cut off
		"unused\nunused 1 \nunusedunused 1": {false, false, false},
	} {
		require.Equal(t, want, AreUnused([]byte(text), 3), "%q", text)
	}
}

func TestValue(t *testing.T) {
	fd, inode, ok := parse(Value(4, 1<<60))
	require.True(t, ok)
	require.Equal(t, 4, fd)
	require.Equal(t, uint64(1<<60), inode)
	for _, bad := range []string{"", "4", "4:", ":4", "2:7", "-1:7", "x:y", "4:7:8"} {
		_, _, ok := parse(bad)
		require.False(t, ok, bad)
	}
}

// Whatever stands in the pipe, the rank is one of the job.
func FuzzMost(f *testing.F) {
	f.Add([]byte("1\n2\nunused 2\n"), 3)
	f.Fuzz(func(t *testing.T, text []byte, size int) {
		size = min(max(size, 0), 1000)
		if rank, ok := Most(text, size); ok && (rank < 0 || rank >= size) {
			t.Fatal(rank)
		}
		if n := len(AreUnused(text, size)); n != size {
			t.Fatal(n)
		}
	})
}
