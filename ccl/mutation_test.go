package ccl_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func (e typed[T]) mutants(s shape, n, rank int) map[string]error {
	said := map[string]error{}
	result := e.want(&s, n, rank)
	try := func(name string, wrong []T) {
		if len(wrong) == 0 || slices.Equal(bytesOf(wrong), bytesOf(result)) {
			return // right after all: swapped zeros, say
		}
		m := e.memory(&s, n, rank)
		copy(m.dst, wrong)
		said[name] = m.check()
	}
	change := func(name string, f func(v []T)) {
		v := slices.Clone(result)
		f(v)
		try(name, v)
	}

	m := e.memory(&s, n, rank)
	if result != nil {
		copy(m.dst, result)
	}
	said[""] = m.check() // the right one

	half := len(result) / 2
	change("halves swapped", func(v []T) {
		for i := range half {
			v[i], v[half+i] = v[half+i], v[i]
		}
	})
	change("neighbors swapped", func(v []T) {
		if len(v) > 1 {
			v[half], v[half-1] = v[half-1], v[half]
		}
	})
	change("one late", func(v []T) {
		if len(v) > 1 {
			copy(v[1:], slices.Clone(v))
		}
	})
	before := e.memory(&s, n, rank)
	change("nothing written", func(v []T) { copy(v, before.dst) })
	change("tail skipped", func(v []T) {
		if len(v) > 0 {
			copy(v[len(v)-1:], before.dst[len(v)-1:])
		}
	})
	stale := s
	stale.number--
	try("stale", e.want(&stale, n, rank))
	for r := range n {
		twice := s
		twice.standIn = make([]int, n)
		for i := range n {
			twice.standIn[i] = i
		}
		twice.standIn[r] = (r + 1) % n
		try(fmt.Sprintf("the next one's share for that of rank %d", r), e.want(&twice, n, rank))
	}
	if len(result) > 0 {
		m := e.memory(&s, n, rank)
		copy(m.dst, result)
		m.all[offsetIn(m.all, m.dst)+len(m.dst)] = result[0]
		if !slices.Equal(bytesOf(m.all), bytesOf(m.want)) {
			said["one too many"] = m.check()
		}
	}
	return said
}

// The check of the product tests notices each kind of wrong result, of every kind,
// type and operator.
func TestMutants(t *testing.T) {
	const n, count = 4, 64
	caught := map[string]int{}
	tried := 0
	number := uint64(0)
	for e, s := range cases(n, []int{count}) {
		number += 2
		s.number = number
		s.uneven(n)
		for rank := range n {
			tried++
			for name, err := range e.mutants(s, n, rank) {
				if name == "" {
					require.NoError(t, err, "%v", s)
					continue
				}
				require.Error(t, err, "%s: %v of %s on rank %d", name, s, e.Type(), rank)
				caught[name]++
			}
		}
	}
	for _, name := range []string{"halves swapped", "neighbors swapped", "one late", "nothing written", "tail skipped", "stale", "one too many"} {
		// Off the root there is no result, and neighbors of 8 bits may be equal.
		require.Greater(t, caught[name], tried/2, name)
	}
	for r := range n {
		require.Greater(t, caught[fmt.Sprintf("the next one's share for that of rank %d", r)], tried/4, "%v of %d", caught, tried)
	}
}

// Two ranks that fill in their parts the other way round are found out by each of
// the ways to reduce, whatever the numbers.
func TestMutantsDiffer(t *testing.T) {
	const n, count = 3, 64
	for _, e := range append(slices.Clone(elements), namedElements...) {
		for op := ccl.Sum; op <= ccl.Avg; op++ {
			s := shape{kind: ccl.KindAllReduce, op: op, count: count, number: 2}
			said := e.mutants(s, n, 0)
			for _, name := range []string{"halves swapped", "one late", "nothing written", "tail skipped", "stale",
				"the next one's share for that of rank 0", "the next one's share for that of rank 1", "one too many"} {
				require.Error(t, said[name], "%s: %v of %s", name, s, e.Type())
			}
			require.NoError(t, said[""])
		}
	}
}
