package main

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/test/program"
)

// trainOn trains on n ranks of this process and returns what each has come to.
func trainOn(t *testing.T, n int) (first, last float32, hashes []string) {
	t.Helper()
	hashes = make([]string, n)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		f, l, weights, err := train(t.Context(), c)
		require.NoError(t, err)
		hashes[c.Rank()] = fmt.Sprintf("%x", fingerprint(weights))
		if c.Rank() == 0 {
			first, last = f, l
		}
	}, ccltest.With(ccl.Options{RankOrder: true}))
	return first, last, hashes
}

func TestSameBitsOnAnyNumberOfRanks(t *testing.T) {
	first, last, one := trainOn(t, 1)
	require.Less(t, last, first/2, "it learns")
	for _, n := range []int{2, 3, 4, 5} {
		_, loss, hashes := trainOn(t, n)
		require.Equal(t, last, loss, "%d ranks", n)
		for r, h := range hashes {
			require.Equal(t, one[0], h, "rank %d of %d", r, n)
		}
	}
}

// The program says the same on 1, 2 and 4 processes, but for their number.
func TestProcesses(t *testing.T) {
	path := program.Build(t)
	var said []string
	for _, n := range []int{1, 2, 4} {
		out, _ := program.Ranks(t, path, n)
		ranks, rest, ok := strings.Cut(out, " ")
		require.True(t, ok)
		require.Equal(t, strconv.Itoa(n), ranks)
		said = append(said, rest)
	}
	require.Contains(t, said[0], "the same bits on 1, 2 and 4 ranks")
	require.Equal(t, said[0], said[1])
	require.Equal(t, said[0], said[2])
}
