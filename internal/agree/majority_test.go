package agree

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMajority(t *testing.T) {
	for _, tc := range []struct {
		name              string
		last, left, ended []int
		want              bool
	}{
		{"nobody is lost", []int{0, 1, 2}, []int{0, 1, 2}, nil, true},
		{"one rank", []int{7}, []int{7}, nil, true},
		{"nobody is left", []int{0, 1}, nil, []int{0, 1}, false},
		{"of nobody", nil, nil, nil, false},
		{"three of five cannot be reached", []int{0, 1, 2, 3, 4}, []int{0, 1}, nil, false},
		{"two of five cannot be reached", []int{0, 1, 2, 3, 4}, []int{2, 3, 4}, nil, true},
		{"three of five have ended", []int{0, 1, 2, 3, 4}, []int{3, 4}, []int{0, 1, 2}, true},
		{"four of five have ended", []int{0, 1, 2, 3, 4}, []int{4}, []int{0, 1, 2, 3}, true},
		{"one has ended, two cannot be reached: half, with the lowest", []int{0, 1, 2, 3, 4}, []int{1, 2}, []int{0}, true},
		{"the same, and the other side has it", []int{0, 1, 2, 3, 4}, []int{3, 4}, []int{0}, false},
		{"half, with rank 0", []int{0, 1}, []int{0}, nil, true},
		{"half, without it", []int{0, 1}, []int{1}, nil, false},
		{"one of two has ended", []int{0, 1}, []int{1}, []int{0}, true},
		{"in ranks of the world, in any order", []int{9, 4, 6, 11}, []int{11, 4}, nil, true},
		{"the others", []int{9, 4, 6, 11}, []int{9, 6}, nil, false},
		{"ranks of other generations do not count", []int{4, 6, 9}, []int{9, 12, 13}, []int{6, 1}, false},
		{"one that has agreed and ended then", []int{0, 1, 2}, []int{1, 2}, []int{2}, true},
		{"named twice", []int{0, 1, 2, 2}, []int{1, 1}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) { assert.Equal(t, tc.want, Majority(tc.last, tc.left, tc.ended)) })
	}
}

// However a generation divides, and whichever ends each side has heard of, at most one side goes on. A side that knows of all
// ends goes on if it has all that live.
func TestOneMajority(t *testing.T) {
	const n = 6
	ranksIn := func(set int) (list []int) {
		for r := range n {
			if set>>r&1 != 0 {
				list = append(list, r)
			}
		}
		return list
	}
	subsets := func(of int, f func(int)) {
		for s := of; ; s = (s - 1) & of {
			f(s)
			if s == 0 {
				return
			}
		}
	}
	last := ranksIn(1<<n - 1)
	for dead := range 1 << n {
		live := (1<<n - 1) &^ dead
		require.Equal(t, live != 0, Majority(last, ranksIn(live), ranksIn(dead)), "all that live, of %06b", live)
		subsets(live, func(one int) {
			may := false // with what one side may know of the dead
			subsets(dead, func(known int) { may = may || Majority(last, ranksIn(one), ranksIn(known)) })
			if !may {
				return
			}
			subsets(live&^one, func(other int) {
				subsets(dead, func(known int) {
					require.False(t, Majority(last, ranksIn(other), ranksIn(known)), "%06b have ended, %06b go on, and %06b, who know of %06b", dead, one, other, known)
				})
			})
		})
	}
}
