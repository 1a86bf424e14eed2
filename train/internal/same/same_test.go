package same_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/internal/same"
)

func TestArgs(t *testing.T) {
	items := func(s string) []string { return strings.Fields(s) }
	for _, tc := range []struct {
		name string
		args []string // of each rank; "!x" is an error
		want []string // of each rank; "" is nil; one for all
	}{
		{"alike", []string{"a b", "a b", "a b"}, []string{""}},
		{"none", []string{"", "", ""}, []string{""}},
		{"the first item that differs", []string{"a b c", "a b d", "a x c"}, []string{"p: ranks differ: rank 0 has b, rank 2 has x"}},
		{"the first rank of those", []string{"a b", "a d", "a e"}, []string{"p: ranks differ: rank 0 has b, rank 1 has d"}},
		{"fewer", []string{"a b", "a b", "a"}, []string{"p: ranks differ: rank 0 has b, rank 2 has no more"}},
		{"cut otherwise", []string{"a b", "ab", "a b"}, []string{"p: ranks differ: rank 0 has a, rank 1 has ab"}},
		{"all are wrong", []string{"!no", "!no", "!no"}, []string{"p: no"}},
		{"one is wrong", []string{"a", "a", "!no"}, []string{"p: rank 2: no"}},
		{"wrong in two ways", []string{"a", "!no", "!never"}, []string{"p: rank 1: no"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				var bad error
				mine := tc.args[c.Rank()]
				if s, ok := strings.CutPrefix(mine, "!"); ok {
					bad, mine = errors.New(s), ""
				}
				err := same.Args(t.Context(), c, "p", bad, items(mine)...)
				want := tc.want[0]
				if want == "" {
					require.NoError(t, err)
				} else {
					require.EqualError(t, err, want)
				}
				if bad != nil && strings.HasSuffix(want, bad.Error()) {
					require.ErrorIs(t, err, bad)
				}
				ccltest.Barrier(t, c)
			}, ccltest.Hosts(2))
		})
	}
	require.EqualError(t, same.Args(t.Context(), nil, "p", nil), "p: the Comm is nil")
}

func TestArgsOfAFailedComm(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		d := ccltest.Split(t, c, 0, 0)
		d.Abort(fmt.Errorf("a test"))
		err := same.Args(t.Context(), d, "p", nil, "a")
		require.ErrorIs(t, err, ccl.ErrAborted)
		require.ErrorContains(t, err, "p: ccl: ")
	})
}

// Facts that all ranks have are compared again and again, and that allocates nothing.
func TestFactsAgain(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		f := same.New("p", nil, "a", "b")
		agree := func() {
			require.NoError(t, f.Agree(t.Context(), c))
		}
		require.Zero(t, ccltest.Allocs(t, c, 5, agree))
		ccltest.Barrier(t, c)
		if c.Rank() == 1 {
			f = same.New("p", nil, "a", "c")
		}
		for range 2 {
			require.EqualError(t, f.Agree(t.Context(), c), "p: ranks differ: rank 0 has b, rank 1 has c")
		}
	})
}
